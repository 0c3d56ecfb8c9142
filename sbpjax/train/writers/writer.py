"""`Writer`: where the metrics of a run go."""

from __future__ import annotations

from pathlib import Path
from typing import Any


class Writer:
    """Base of writers; a subclass overrides what it needs. Only the process of rank 0 has writers that are open."""

    def open(self, out: Path | None, step: int, max_steps: int) -> None:
        """Begin.

        Args:
            out: the run's directory, None if it has none.
            step: steps that were done before; what an earlier run wrote beyond them does not count.
            max_steps: steps in all.
        """

    def write(self, step: int, metrics: dict[str, float]) -> None:
        """Take the metrics of a step; between `open` and `close`."""

    def say(self, text: str) -> None:
        """Take a line of text for the reader, also before `open`: a run says what it resumes."""

    def close(self) -> None:
        """End; what was written is on the disk then."""


def plain(value: Any) -> str:
    """Return a number in as many digits as a reader wants."""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return str(value)
