"""How a worker of pytest-xdist ended that is gone: by which signal, or with which code.

The run itself says "node down: Not properly terminated", and faulthandler only speaks for signals in threads with room
on their stack: a stack overflow in any thread but the main one ends a process without a word (signal 11), as do
`os._exit` (a code) and the kernel or somebody's `kill` (signal 9). So the code tells which of them it was.
"""

import signal
import subprocess


def describe_exit(code: int | None) -> str:
    """Return an exit code of `subprocess.Popen` in words."""
    if code is None:
        return "still runs, and does not answer"
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = "unknown"
    return f"was ended by signal {-code} ({name})"


def of_node(node) -> str:
    """Return how the process of a node ended."""
    process = getattr(getattr(getattr(node, "gateway", None), "_io", None), "popen", None)
    if process is None:
        return "is no process of this machine"
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        pass
    return describe_exit(process.poll())
