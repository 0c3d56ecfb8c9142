"""`JsonLines`: writer of one JSON object per record to ``OUT/metrics.jsonl``.

    {"step": 10, "loss": 4.1, "lr": 0.0002, …}

The file belongs to the run: the records of a killed run after its last checkpoint are removed when it is resumed. A new
run in the same directory keeps the file of the previous one, as ``metrics.1.jsonl``, ``metrics.2.jsonl`` …
"""

from __future__ import annotations

import itertools
import json
import math
import os
from pathlib import Path
from typing import TextIO

from sbpjax.errors import TrainError
from sbpjax.train.disk import worded

from .writer import Writer

NAME = "metrics.jsonl"


class JsonLines(Writer):
    """Write a line of JSON per record; a resumed run continues after its first step."""

    def __init__(self) -> None:
        self._file: TextIO | None = None
        self._path = Path(NAME)

    def open(self, out: Path | None, step: int, max_steps: int) -> None:
        """Open the file, and drop the records of an earlier run after `step`, and incomplete ones.

        Raises:
            TrainError: the file cannot be read or written, or is damaged before its end.
        """
        if out is None:
            return
        self._path = path = out / NAME
        with worded(f"writing metrics into {path}", out):
            if not step and path.is_file() and path.stat().st_size:
                free = next(n for n in itertools.count(1) if not (out / f"metrics.{n}.jsonl").exists())
                os.replace(path, out / f"metrics.{free}.jsonl")
            kept = _kept_records(path, step) if path.exists() else b""
            part = path.with_name(f"{NAME}.part")
            part.write_bytes(kept)
            os.replace(part, path)
            self._file = path.open("a", buffering=1, encoding="utf-8")  # a whole line is on its way to the disk

    def write(self, step: int, metrics: dict[str, float]) -> None:
        """Write a line; NaN and infinities, which JSON lacks, are written as texts such as ``"nan"``."""
        if self._file is not None:
            numbers = {name: value if abs(value) < float("inf") else str(value) for name, value in metrics.items()}
            with worded(f"writing metrics into {self._path}", self._path.parent):
                print(json.dumps({"step": step, **numbers}), file=self._file)

    def close(self) -> None:
        """Close the file."""
        file, self._file = self._file, None
        if file is not None:
            with worded(f"writing metrics into {self._path}", self._path.parent):
                file.close()


def _kept_records(path: Path, step: int) -> bytes:
    """Return the records up to a step. The last ones may be damaged by a kill or a power failure.

    Raises:
        TrainError: an earlier record is damaged.
    """
    lines = path.read_bytes().split(b"\n")
    steps = [_step(line) for line in lines]
    while steps and steps[-1] is None:
        steps.pop()
    for number, found in enumerate(steps, 1):
        if found is None and lines[number - 1].strip():
            seen = f"line {number}: {lines[number - 1][:60].decode(errors='backslashreplace')!r}"
            rule = 'each line is an object with the number of a step: {"step": 10, …}'
            fix = f"mend that line, or: mv {path} {path.with_name('metrics.damaged.jsonl')}"
            raise TrainError(f"going on with the metrics in {path}", seen, rule, fix)
    return b"".join(lines[i] + b"\n" for i, found in enumerate(steps) if found is not None and found <= step)


def _step(line: bytes) -> float | None:
    """Return the step of a line, None for one that is no record."""
    try:
        step = json.loads(line.decode())["step"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return step if isinstance(step, (int, float)) and not isinstance(step, bool) and math.isfinite(step) else None
