"""`Bar`: progress bar on a terminal, with `Lines` as the fallback elsewhere."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

from .lines import Lines, text_of
from .writer import Writer


def console_writer() -> Writer:
    """Return the writer for the console: a bar on a terminal where rich is installed, else lines."""
    return Bar() if sys.stdout.isatty() and importlib.util.find_spec("rich") is not None else Lines()


class Bar(Writer):
    """Show a bar with the latest loss and speed, and evaluations as lines above it.

    Args:
        console: a console of rich; by default that of stdout.
    """

    def __init__(self, console: Any = None) -> None:
        self._console = console
        self._progress: Any = None
        self._task: Any = None

    def open(self, out: Path | None, step: int, max_steps: int) -> None:
        """Show the bar."""
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
        self._progress = Progress(*columns, console=self._console, refresh_per_second=2)
        self._task = self._progress.add_task("", total=max_steps, completed=step)
        self._progress.start()

    def write(self, step: int, metrics: dict[str, float]) -> None:
        """Move the bar; an evaluation is a line above it."""
        if any("/" in name for name in metrics):
            self.say(f"step {step:,}   {text_of(metrics)}")
        else:
            known = {name: value for name, value in metrics.items() if name != "eta_s"}
            self._progress.update(self._task, completed=step, description=text_of(known))

    def say(self, text: str) -> None:
        """Print a line above the bar, or at its future position."""
        from rich.console import Console

        if self._progress is None and self._console is None:
            self._console = Console()
        console = self._console if self._progress is None else self._progress.console
        console.print(text, markup=False, highlight=False)

    def close(self) -> None:
        """Leave the bar on the screen."""
        if self._progress is not None:
            self._progress.stop()
