"""Progress of work that takes seconds to hours: planning, compiling, preprocessing, loading, saving.

    Trainer_0.build: compiling for 12 s
    saving runs/gpt: 35 %, 12 s
    saving runs/gpt: 100 %, 31.4 s, done

    with show_progress("saving runs/gpt", total=size) as progress:
        for block in blocks:
            write(block)
            progress.advance(len(block))

| stderr is | shown | after |
|---|---|---|
| a terminal | a line with a bar, written over itself every second and gone at the end | 2 s |
| a notebook's | a line below the cell, which stays and shows the total time | 2 s |
| a file or pipe | a line of the first process, and one at the end | 5 s, then every 9 s |

The seconds until the first line count from the last line, or from the start of consecutive work: otherwise, tracing,
planning and compiling of 4 s each would be 12 s without a line. For the first work, they count from the import.

Neither XLA nor the planner reports how much is left: then the line has no share. Progress inside other progress is not
shown. ``SBPJAX_COMPILE_NOTE=off`` turns all of it off.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, TextIO

from . import processes

_BAR = 24
_PAUSE_S = 5.0  # work that begins within this time after other work counts as a part of it
_LEAST_S = 1.0  # shorter work has no line, however long the silence before it


class Progress:
    """The state of some work.

    Args:
        text: the work.
        total: its amount, in any unit; None if it is not known.

    Attributes:
        done: the amount that is done.
        detail: further text.
        outcome: how it ended, for the last line.
    """

    def __init__(self, text: str, total: int | None = None) -> None:
        self.text, self.total = text, total
        self.done, self.detail, self.outcome = 0, "", "done"

    def advance(self, amount: int, detail: str = "") -> None:
        """Count some of the work as done."""
        self.done += amount
        self.detail = detail

    def line(self, seconds: str, bar: bool = False) -> str:
        """Return the line.

        Args:
            seconds: the time so far.
            bar: draw a bar where the share is known.
        """
        if self.total is None:
            return f"{self.text} for {seconds} s"
        share = min(self.done / max(self.total, 1), 1.0)
        drawn = f"[{'#' * int(_BAR * share):<{_BAR}}] " if bar else ""
        detail = f", {self.detail}" if self.detail else ""
        return f"{self.text}: {drawn}{100 * share:.0f} %{detail}, {seconds} s"


class _Display:
    """Where progress is shown; the first line comes after `first_s`, the next ones every `every_s` seconds."""

    first_s, every_s = 2.0, 1.0

    def write(self, text: str) -> None:
        raise NotImplementedError

    def end(self, text: str) -> None:
        """Show the last line."""
        self.write(text)


class _Terminal(_Display):
    """A line that is written over itself."""

    def __init__(self, stream: TextIO) -> None:
        self.stream, self.width = stream, 0

    def write(self, text: str) -> None:
        self.stream.write(f"\r{text:<{self.width}}")
        self.stream.flush()
        self.width = len(text)

    def end(self, text: str) -> None:
        self.write("")
        self.stream.write("\r")
        self.stream.flush()


class _Cell(_Display):
    """A line below the cell of a notebook."""

    def __init__(self, display: Any) -> None:
        self.display, self.handle = display, None

    def write(self, text: str) -> None:
        shown = {"text/plain": text}
        if self.handle is None:
            self.handle = self.display(shown, raw=True, display_id=True)
        else:
            self.handle.update(shown, raw=True)


class _File(_Display):
    """Lines of a log, at most 10 s apart."""

    first_s, every_s = 5.0, 9.0

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> None:
        self.stream.write(f"{text}\n")
        self.stream.flush()


def _find_display() -> _Display | None:
    """Return the display of this process; None if it has none."""
    notebook = sys.modules.get("IPython")
    if hasattr(notebook.get_ipython() if notebook is not None else None, "kernel"):
        return _Cell(importlib.import_module("IPython.display").display)
    if sys.stderr is None:
        return None
    if sys.stderr.isatty():
        return _Terminal(sys.stderr)
    return _File(sys.stderr) if processes.current().rank == 0 else None


class _Silence:
    """Time without a line, over consecutive work.

    Attributes:
        start: when the last line was written, or when consecutive work began.
        end: when the last work ended; None before the first work.
    """

    def __init__(self, start: float) -> None:
        self.start = start
        self.end: float | None = None

    def begin(self, now: float) -> float:
        """Return for how long there has been no line when some work begins."""
        if self.end is not None and now - self.end > _PAUSE_S:
            self.start = now
        return now - self.start


_shown = threading.Lock()  # held by the progress that is shown
_silence = _Silence(time.perf_counter())  # changed only while `_shown` is held


def show_phase(operation: str, phase: str) -> contextlib.AbstractContextManager[Progress]:
    """Show that an operation, by its first line, is tracing, planning or compiling."""
    return show_progress(f"{operation.splitlines()[0]}: {phase}")


@contextlib.contextmanager
def show_progress(text: str, total: int | None = None) -> Iterator[Progress]:
    """Show progress while the block runs.

    Args:
        text: the work; its first line is shown.
        total: its amount; None if it is not known.

    Returns:
        The `Progress`, whose `advance` counts the work.
    """
    progress = Progress(text.split("\n", 1)[0], total)
    display = None if os.environ.get("SBPJAX_COMPILE_NOTE", "").lower() in ("off", "0") else _find_display()
    if display is None or not _shown.acquire(blocking=False):
        yield progress
        return
    done = threading.Event()
    thread = threading.Thread(target=_show, args=(display, progress, done.wait), name="sbpjax-progress", daemon=True)
    thread.start()
    try:
        yield progress
    except BaseException:
        progress.outcome = "failed"
        raise
    finally:
        done.set()
        thread.join()
        _shown.release()


def _show(
    display: _Display,
    progress: Progress,
    wait: Callable[[float], bool],
    clock: Callable[[], float] = time.perf_counter,
    silence: _Silence = _silence,
) -> None:
    """Write the lines of some work until it ends.

    ``wait``: waits for some seconds at most; returns whether the work has ended.
    """
    start = clock()
    is_short = wait(max(display.first_s - silence.begin(start), _LEAST_S))
    if not is_short:
        bar = isinstance(display, _Terminal)
        display.write(progress.line(f"{clock() - start:.0f}", bar))
        while not wait(display.every_s):
            display.write(progress.line(f"{clock() - start:.0f}", bar))
        display.end(f"{progress.line(f'{clock() - start:.1f}', bar)}, {progress.outcome}")
    silence.end = clock()
    if not is_short:
        silence.start = silence.end
