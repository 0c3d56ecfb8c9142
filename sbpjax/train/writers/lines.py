"""`Lines`: writer of one line of text per record, for logs and pipes."""

from __future__ import annotations

import sys
from pathlib import Path

from .writer import Writer, plain

FIRST = ("loss", "lr", "tokens_per_s", "step_ms", "mfu", "eta_s")
UNITS = {"tokens_per_s": "{} tokens/s", "step_ms": "{} ms", "eta_s": "{} s left"}


def text_of(metrics: dict[str, float]) -> str:
    """Return the metrics as a readable text."""
    known = [name for name in FIRST if name in metrics]
    others = [name for name in metrics if "/" in name]
    return "   ".join(UNITS.get(name, f"{name} {{}}").format(plain(metrics[name])) for name in [*known, *others])


class Lines(Writer):
    """Print a line per record: ``step    20 of 1,000   loss 4.1   lr 0.0002   12,000 tokens/s   85 ms   83 s left``."""

    def __init__(self) -> None:
        self._width, self._max_steps = 1, ""

    def open(self, out: Path | None, step: int, max_steps: int) -> None:
        """Store the length of the run."""
        self._max_steps = f"{max_steps:,}"
        self._width = len(self._max_steps)

    def write(self, step: int, metrics: dict[str, float]) -> None:
        """Print the metrics of a step."""
        if text := text_of(metrics):
            self.say(f"step {step:{self._width},} of {self._max_steps}   {text}")

    def say(self, text: str) -> None:
        """Print a line."""
        print(text, file=sys.stdout, flush=True)
