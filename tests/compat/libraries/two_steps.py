"""Runs programs here and in PyTorch, each in a process of its own, and compares their first two training steps.

    PYTHONPATH=.venv/libraries:. python -m tests.compat.libraries.two_steps               # all, kept in `results.json`
    PYTHONPATH=.venv/libraries:. python -m tests.compat.libraries.two_steps navit_model

The times are CPU seconds. Both runs of a program follow each other; ours begins with an empty cache.
"""

import json
import os
import subprocess
import sys

from tests.compat.libraries.run import PROGRAMS, RESULTS

OURS = {"SBPJAX_CACHE_DIR": "off", "SBPJAX_CPU_DEVICES": "1", "SBPJAX_COMPILE_NOTE": "off", "JAX_PLATFORMS": "cpu"}


def run(name, *options, **environment):
    """Return the line of a program."""
    command = [sys.executable, "-m", "tests.compat.libraries.run", name, *options]
    env = os.environ | environment | {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    made = subprocess.run(command, env=env, capture_output=True, text=True, timeout=1200)
    lines = [json.loads(line[7:]) for line in made.stdout.splitlines() if line.startswith("RESULT ")]
    return lines[0] if lines else {"error": made.stderr[-1000:]}


def main(names):
    """Print difference, seconds and ratio of some programs, or of all, and keep them for the page."""
    for name in names or PROGRAMS:
        ours, theirs = run(name, "--results", "beside", **OURS), run(name, "--torch")
        times = [line.get("two_steps_s") for line in (ours, theirs)]
        ratio = f"{times[0]:.2f} s, PyTorch {times[1]:.2f} s: {times[0] / times[1]:.1f} ×" if all(times) else ""
        print(f"{name:26}", ours.get("difference", ours.get("error")), theirs.get("error", ""), ratio, flush=True)
        if all(times):
            results = json.loads(RESULTS.read_text())
            results[name]["two_steps_s"] = times
            RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
