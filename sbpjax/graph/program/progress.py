"""Progress line in a terminal or notebook while a graph is planned or compiled for more than two seconds.

    Trainer_0.build: compiling for 12 s

Neither XLA nor the planner reports how much is left. The line goes to stderr, if that is a terminal. In a notebook it
goes below the cell, where it stays and shows the total time. Logs get none; ``SBPJAX_COMPILE_NOTE=off`` leaves it out.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any, TextIO

SLOW_S = 2.0
_EVERY_S = 1.0


@contextlib.contextmanager
def show_activity(operation: str, doing: str) -> Iterator[None]:
    """Show the current activity while the block runs.

    Args:
        operation: the user's request; its first line is shown.
        doing: the activity of the block.
    """
    off = os.environ.get("SBPJAX_COMPILE_NOTE", "").lower() in ("off", "0")
    line = None if off else _line()
    if line is None:
        yield
        return
    done = threading.Event()
    text = f"{operation.splitlines()[0]}: {doing} for"
    thread = threading.Thread(target=_show, args=(line, text, done), name="sbpjax-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


class _Terminal:
    """A line that is written over itself."""

    def __init__(self, stream: TextIO) -> None:
        self.stream, self.width = stream, 0

    def write(self, text: str) -> None:
        self.stream.write(f"\r{text}")
        self.stream.flush()
        self.width = len(text)

    def end(self, text: str) -> None:
        self.write(" " * self.width)
        self.write("")


class _Cell:
    """A line below the cell of a notebook."""

    def __init__(self, display: Any) -> None:
        self.display, self.handle = display, None

    def write(self, text: str) -> None:
        shown = {"text/plain": text}
        if self.handle is None:
            self.handle = self.display(shown, raw=True, display_id=True)
        else:
            self.handle.update(shown, raw=True)

    end = write


def _line() -> _Terminal | _Cell | None:
    """Return the progress line for this output: None where no terminal or notebook shows it."""
    notebook = sys.modules.get("IPython")
    if hasattr(notebook.get_ipython() if notebook is not None else None, "kernel"):
        return _Cell(importlib.import_module("IPython.display").display)
    return _Terminal(sys.stderr) if sys.stderr is not None and sys.stderr.isatty() else None


def _show(line: _Terminal | _Cell, text: str, done: threading.Event) -> None:
    start = time.perf_counter()
    if done.wait(SLOW_S):
        return
    while True:
        line.write(f"{text} {time.perf_counter() - start:.0f} s")
        if done.wait(_EVERY_S):
            break
    line.end(f"{text} {time.perf_counter() - start:.1f} s")
