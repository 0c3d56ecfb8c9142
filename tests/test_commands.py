"""Every command, on a terminal and in a pipe: its help, a short run, and an error."""

import json
import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LIMIT_S = 300
TRAIN = "tests.train.run_config"

# What a user starts with `python -m`, and what shows that it did its work.
COMMANDS = {
    "sbpjax": [
        ([], 0, r"sbpjax serve-openai llama-7b"),
        (["--version"], 0, r"^sbpjax \d+\.\d+"),
        (["doctor"], 0, r"devices +ok +1 x cpu"),
        (["cache", "info"], 0, r"programs|cache"),
        (["trian"], 2, r"there is no command 'trian'"),
    ],
    "sbpjax.cache": [(["info"], 0, r"programs|cache")],
    "sbpjax.distributed.launch": [
        (["--nproc_per_node", "2", "--port", "0", "--no_python", "echo", "up"], 0, r"\[rank 1\] up"),
        (["--nproc_per_node", "2", "--port", "0", "--no_python", "false"], 1, r"exited with code 1"),
    ],
    "sbpjax.plan": [
        (["llama-8b", "--machine", "h100:8", "--batch", "64k"], 0, r"Trainer\("),
        (["llama-9b", "--machine", "h100:8", "--batch", "64k"], 1, r"seen:"),
    ],
    "sbpjax.run": [(["--as", "torch", "script.py", "more"], 0, r"1\.0 \['script.py', 'more'\]")],
    "sbpjax.serving": [(["nowhere"], 1, r"seen:")],
    "sbpjax.serving.from_run": [(["nowhere", "to", "--input", "x:3"], 1, r"seen: no such directory")],
    "sbpjax.serving.openai": [(["nowhere"], 1, r"seen:")],
    "sbpjax.train": [
        ([TRAIN, "trainer.max_steps=2"], 0, r"loss"),
        ([TRAIN, "--resume"], 0, r"resumed at step 2"),
        ([TRAIN, "--resume", "trainer.max_steps=6", "trainer.log_every=2"], 0, r"changed since the run was begun"),
        ([TRAIN, "--resume", "trainer.out=other", "trainer.max_steps=1"], 0, r"no checkpoint yet"),
        ([TRAIN, "--eval-only"], 0, r'"validation/loss"'),
        ([TRAIN, "--fast-dev-run"], 0, r"step 2 of 2"),
        ([TRAIN, "--explain"], 0, r"all-gather"),
        ([TRAIN], 1, r"seen: a checkpoint of step 6"),
    ],
    "sbpjax.train.preprocess": [
        (["texts.txt", "--output", "tokens", "--train-vocab", "300"], 0, r"tokens.bin: 1 documents"),
        (["texts.txt", "--output", "tokens"], 1, r"is there"),
    ],
    "sbpjax.train.view": [(["."], 1, r"seen: no file metrics.jsonl")],
}
NO_COMMANDS = {  # files that other files start
    "sbpjax/data/loading/worker_main.py",
    "sbpjax/_core/runtime/parent_death.py",
    "sbpjax/distributed/standby.py",
}


def run(command, folder, terminal):
    """Return the exit code of a command and its whole output."""
    variables = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES")}
    variables |= {"PYTHONPATH": str(ROOT), "TERM": "xterm", "JAX_PLATFORMS": "cpu"}
    options = {"cwd": folder, "env": variables, "start_new_session": True}
    command = [sys.executable, "-m", *command]
    if not terminal:
        both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        done = subprocess.run(command, stdin=subprocess.DEVNULL, timeout=LIMIT_S, check=False, **both, **options)
        return done.returncode, done.stdout.decode()
    ours, theirs = pty.openpty()
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, **options)
    os.close(theirs)
    text, end = b"", time.monotonic() + LIMIT_S
    while True:
        ready = select.select([ours], [], [], 1.0)[0]
        try:
            found = os.read(ours, 65536) if ready else None
        except OSError:  # EIO: no process has the terminal any more
            found = b""
        text += found or b""
        if found == b"":
            break
        assert time.monotonic() < end, text.decode(errors="replace")
    os.close(ours)
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text.decode())
    return process.wait(30), plain.replace("\r\n", "\n")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "script.py").write_text("import sys, torch\nprint(torch.ones(1).item(), sys.argv)\n")
    (tmp_path / "texts.txt").write_text("the quick brown fox jumps over the lazy dog\n" * 50)
    return tmp_path


def test_all_commands_are_in_the_table():
    found = set()
    for file in (ROOT / "sbpjax").rglob("*.py"):
        path = str(file.relative_to(ROOT))
        if re.search(r'^if __name__ == "__main__":', file.read_text(), re.MULTILINE) and path not in NO_COMMANDS:
            found.add(path.removesuffix(".py").replace("/", ".").removesuffix(".__main__"))
    assert found == COMMANDS.keys()


@pytest.mark.slow
@pytest.mark.parametrize("terminal", [True, False], ids=["terminal", "pipe"])
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_works(name, terminal, folder):
    if name == "sbpjax.train.preprocess":
        pytest.importorskip("tokenizers", reason="needs the extra `train`")
    code, text = run([name, "--help"], folder, terminal)
    assert code == 0 and text.startswith("usage: "), text
    for arguments, wanted, shows in COMMANDS[name]:
        code, text = run([name, *arguments], folder, terminal)
        assert code == wanted and re.search(shows, text), f"{arguments}: code {code}\n{text}"
        assert "Traceback" not in text, text
        if "--eval-only" in arguments:
            assert json.loads(text.strip().splitlines()[-1])["step"] == 6
