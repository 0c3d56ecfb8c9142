"""`Writer`: base class of metric writers."""

from __future__ import annotations

from pathlib import Path
from typing import Any


class Writer:
    """Base of writers; a subclass overrides the methods that it needs. Only rank 0 has open writers."""

    def open(self, out: Path | None, step: int, max_steps: int) -> None:
        """Begin.

        Args:
            out: the run's directory, None if it has none.
            step: steps that were done before; later records of an earlier run do not count.
            max_steps: steps in all.
        """

    def write(self, step: int, metrics: dict[str, float]) -> None:
        """Write the metrics of a step; between `open` and `close`."""

    def say(self, text: str) -> None:
        """Write a line of text for the reader, also before `open`: a run reports its resumption."""

    def close(self) -> None:
        """Close; the records are on the disk then."""


def plain(value: Any) -> str:
    """Return a number with as many digits as are useful to a reader."""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return str(value)
