"""A line at the terminal while a graph is planned or compiled for more than two seconds, gone when it is done.

    Trainer_0.build: compiling for 12 s

Neither XLA nor the planner says how much is left. The line goes to stderr, and only to a terminal: logs and notebooks
get none. ``SBPJAX_COMPILE_NOTE=off`` leaves it out.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterator

SLOW_S = 2.0
_EVERY_S = 1.0


@contextlib.contextmanager
def shown(asked: str, doing: str) -> Iterator[None]:
    """Show what is being done while the block runs.

    Args:
        asked: what the user asked for; the first line of it is shown.
        doing: what the block does.
    """
    stream = sys.stderr
    off = os.environ.get("SBPJAX_COMPILE_NOTE", "").lower() in ("off", "0")
    if off or stream is None or not stream.isatty():
        yield
        return
    done = threading.Event()
    text = f"{asked.splitlines()[0]}: {doing} for"
    thread = threading.Thread(target=_show, args=(stream, text, done), name="sbpjax-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _show(stream, text: str, done: threading.Event) -> None:
    start = time.perf_counter()
    if done.wait(SLOW_S):
        return
    line = ""
    while not done.wait(_EVERY_S if line else 0):
        line = f"{text} {time.perf_counter() - start:.0f} s"
        stream.write(f"\r{line}")
        stream.flush()
    stream.write("\r" + " " * len(line) + "\r")
    stream.flush()
