"""What a process may say before C++ ends it."""

import signal
import subprocess
import sys

import pytest

CODE = """
import ctypes, threading
from sbpjax.distributed.rendezvous.abort_message import set_terminate_handler
def words():
    print("a message", flush=True)
    raise ValueError("lost")
undo = set_terminate_handler(words)
{}
thread = threading.Thread(target=ctypes.CDLL("libstdc++.so.6")._ZSt9terminatev)  # as Gloo's thread does
thread.start()
thread.join()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the C++ library has another name there")
@pytest.mark.parametrize("then, expected", [("", "a message\n"), ("undo()", "")], ids=["set", "undone"])
def test_a_function_runs_before_the_process_is_aborted_as_it_would_have_been(then, expected):
    done = subprocess.run([sys.executable, "-c", CODE.format(then)], capture_output=True, text=True, timeout=100)
    assert done.stdout == expected and done.returncode == -signal.SIGABRT
    assert "terminate called without an active exception" in done.stderr  # of the handler before
