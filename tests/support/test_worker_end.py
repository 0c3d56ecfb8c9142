"""A worker that is gone: the run says how it ended."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import worker_end

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    "code, words",
    [(None, "still runs"), (1, "exit code 1"), (-9, r"signal 9 \(SIGKILL\)"), (-99, r"signal 99 \(unknown\)")],
)
def test_a_code_in_words(code, words):
    assert re.search(words, worker_end.describe_exit(code))


# Overflows the stack of a thread: faulthandler has a stack of its own for the main thread alone, and says nothing.
LOST = """
import faulthandler, threading
def test_it():
    thread = threading.Thread(target=faulthandler._stack_overflow)
    thread.start()
    thread.join()
"""


def test_the_run_says_how_a_worker_ended(tmp_path):
    pytest.importorskip("xdist")
    (tmp_path / "test_lost.py").write_text(LOST)
    (tmp_path / "conftest.py").write_text("from tests.conftest import pytest_testnodedown as pytest_testnodedown\n")
    command = [sys.executable, "-m", "pytest", "-n", "1", "-p", "no:cacheprovider", "--max-worker-restart", "0"]
    done = subprocess.run(
        [*command, str(tmp_path)], capture_output=True, text=True, cwd=tmp_path, timeout=120,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert "worker gw0 was ended by signal 11 (SIGSEGV)" in done.stdout + done.stderr, done.stdout + done.stderr
