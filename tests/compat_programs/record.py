"""Run the programs in processes of their own and keep what they showed: `python record.py [--as oneflow] [NAME ...]`.

Run by a Python that has the real OneFlow, this writes the record that the tests compare with (`expected.jsonl`, a line
per program). With `--as oneflow` the same programs run on sbpjax, through `sbpjax.run`, and are compared with it.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile

FOLDER = pathlib.Path(__file__).parent
EXPECTED = FOLDER / "expected.jsonl"


def programs():
    """Return the programs: name (`family/NNN_name`) to path."""
    return {f"{p.parent.name}/{p.stem}": p for p in sorted(FOLDER.glob("*/[0-9]*.py"))}


def ranks(path):
    """Return how many ranks a program is for."""
    first = path.read_text().split("\n", 1)[0]
    return int(first.removeprefix("# ranks: ")) if first.startswith("# ranks: ") else 1


def run(path, alias, timeout=180):
    """Run a program and return its lines, a list per rank, and what went wrong."""
    count = ranks(path)
    command = [sys.executable]
    if count > 1:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        package = "sbpjax" if alias else "oneflow"
        command += ["-m", f"{package}.distributed.launch", "--nproc_per_node", str(count), "--master_port", str(port)]
        command += ["-m", "sbpjax.run", "--as", alias] if alias else []
    elif alias:
        command += ["-m", "sbpjax.run", "--as", alias]
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "shown")
        places = [str(FOLDER), *filter(None, [os.environ.get("PYTHONPATH")])]
        env = {**os.environ, "COMPAT_OUT": out, "PYTHONPATH": os.pathsep.join(places)}
        try:
            done = subprocess.run(
                [*command, str(path)], env=env, capture_output=True, text=True, timeout=timeout, cwd=folder
            )
            failed = "" if done.returncode == 0 else (done.stdout + done.stderr)[-1500:]
        except subprocess.TimeoutExpired:
            failed = f"did not end within {timeout} s"
        lines = []
        for rank in range(count):
            file = pathlib.Path(f"{out}.{rank}")
            lines.append([json.loads(line) for line in file.read_text().splitlines()] if file.exists() else [])
    return lines, failed


def _report(name, expected, lines):
    sys.path.insert(0, str(FOLDER.parents[1]))
    from tests.compat_programs import compare, differences

    listed = differences.DIFFERENT.get(name, ((), ""))[0] or ()
    for label, text in compare.differences(expected, lines):
        if label not in listed:
            print(f"{name}: {text}")


def main():
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--as", dest="alias", help="run on sbpjax, which answers to this name")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("names", nargs="*", help="parts of names of programs")
    options = parser.parse_args()
    chosen = {n: p for n, p in programs().items() if not options.names or any(part in n for part in options.names)}
    known = {}
    if EXPECTED.exists():
        known = dict(json.loads(line) for line in EXPECTED.read_text().splitlines())
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        results = dict(zip(chosen, pool.map(lambda path: run(path, options.alias), chosen.values())))
    for name, (lines, failed) in results.items():
        if failed:
            print(f"{name}: {failed}")
        elif options.alias is not None:
            _report(name, known[name], lines)
        else:
            known[name] = lines if any(one != lines[0] for one in lines) else lines[:1]
    if options.alias is None:
        text = "".join(json.dumps([name, known[name]], separators=(",", ":")) + "\n" for name in sorted(known))
        EXPECTED.write_text(text)
    print(f"{len(chosen)} programs, {sum(bool(f) for _, f in results.values())} failed")


if __name__ == "__main__":
    main()
