"""`JsonLines`: an object per record in ``OUT/metrics.jsonl``.

    {"step": 10, "loss": 4.1, "lr": 0.0002, …}

The file is that of the run: what a killed run wrote behind its last checkpoint goes when it is resumed. A run that
begins anew in the same directory keeps the file of the one before, as ``metrics.1.jsonl``, ``metrics.2.jsonl`` …
"""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path
from typing import TextIO

from .writer import Writer


class JsonLines(Writer):
    """Write a line of JSON per record; a resumed run goes on behind the step that it begins with."""

    def __init__(self) -> None:
        self._file: TextIO | None = None

    def open(self, out: Path | None, step: int, max_steps: int) -> None:
        """Open the file, and leave out what an earlier run wrote behind `step`, or did not write to the end."""
        if out is None:
            return
        path = out / "metrics.jsonl"
        if not step and path.exists() and path.stat().st_size:
            free = next(n for n in itertools.count(1) if not (out / f"metrics.{n}.jsonl").exists())
            os.replace(path, out / f"metrics.{free}.jsonl")
        kept = [line for line in path.read_text().splitlines() if _step(line) <= step] if path.exists() else []
        part = path.with_name("metrics.jsonl.part")
        part.write_text("".join(f"{line}\n" for line in kept))
        os.replace(part, path)
        self._file = path.open("a", buffering=1)  # a line is on its way to the disk when it is whole

    def write(self, step: int, metrics: dict[str, float]) -> None:
        """Write a line; what is no number in JSON is written as its name, ``"nan"``."""
        if self._file is not None:
            numbers = {name: value if abs(value) < float("inf") else str(value) for name, value in metrics.items()}
            print(json.dumps({"step": step, **numbers}), file=self._file)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _step(line: str) -> float:
    """Return the step of a line; infinity for one that was not written to its end."""
    try:
        return json.loads(line)["step"]
    except (ValueError, KeyError, TypeError):
        return float("inf")
