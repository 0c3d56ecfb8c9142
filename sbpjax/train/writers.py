"""Writers of metrics: console, JSON lines, TensorBoard, Weights & Biases.

`JsonLines` writes ``OUT/metrics.jsonl``, an object per record: ``{"step": 10, "loss": 4.1, "lr": 0.0002, …}``. The file
belongs to the run: the records of a killed run after its last checkpoint are removed when it is resumed. A new run in
the same directory keeps the file of the previous one, as ``metrics.1.jsonl``, ``metrics.2.jsonl`` …
"""

from __future__ import annotations

import importlib.util
import itertools
import json
import math
import os
import sys
from pathlib import Path
from typing import Any, TextIO

from sbpjax.errors import TrainError
from sbpjax.train.disk import convert_os_errors
from sbpjax.utils.host import LazyModule, pip_install

rich_console = LazyModule("rich.console")  # of the extra `train`
progress = LazyModule("rich.progress")


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

    def write_text(self, text: str) -> None:
        """Write a line of text for the reader, also before `open`: a run reports its resumption."""

    def close(self) -> None:
        """Close; the records are on the disk then."""


def plain(value: Any) -> str:
    """Return a number with as many digits as are useful to a reader."""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return str(value)


FIRST = ("loss", "lr", "tokens_per_s", "step_ms", "mfu", "eta_s")
UNITS = {"tokens_per_s": "{} tokens/s", "step_ms": "{} ms", "eta_s": "{} s left"}


def text_of(metrics: dict[str, float]) -> str:
    """Return the metrics as a readable text."""
    known = [name for name in FIRST if name in metrics]
    others = [name for name in metrics if "/" in name]
    return "   ".join(UNITS.get(name, f"{name} {{}}").format(plain(metrics[name])) for name in [*known, *others])


class LineWriter(Writer):
    """Print one line per record.

    Example:
        >>> writer = LineWriter()
        >>> writer.open(None, 0, 1000)
        >>> writer.write(20, {"loss": 4.1, "lr": 0.0002, "tokens_per_s": 12e3, "step_ms": 85.0, "eta_s": 83.0})
        step    20 of 1,000   loss 4.1   lr 0.0002   12,000 tokens/s   85 ms   83 s left
    """

    def __init__(self) -> None:
        self._width, self._max_steps = 1, ""

    def open(self, out: Path | None, step: int, max_steps: int) -> None:
        """Store the length of the run."""
        self._max_steps = f"{max_steps:,}"
        self._width = len(self._max_steps)

    def write(self, step: int, metrics: dict[str, float]) -> None:
        """Print the metrics of a step."""
        if text := text_of(metrics):
            self.write_text(f"step {step:{self._width},} of {self._max_steps}   {text}")

    def write_text(self, text: str) -> None:
        """Print a line."""
        print(text, file=sys.stdout, flush=True)


def console_writer() -> Writer:
    """Return the writer for the console: a bar on a terminal where rich is installed, else lines."""
    return ProgressBarWriter() if sys.stdout.isatty() and importlib.util.find_spec("rich") is not None else LineWriter()


class ProgressBarWriter(Writer):
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
        text = progress.TextColumn("{task.description}")
        columns = (progress.BarColumn(), progress.MofNCompleteColumn(), progress.TimeRemainingColumn(), text)
        self._progress = progress.Progress(*columns, console=self._console, refresh_per_second=2)
        self._task = self._progress.add_task("", total=max_steps, completed=step)
        self._progress.start()

    def write(self, step: int, metrics: dict[str, float]) -> None:
        """Move the bar; an evaluation is a line above it."""
        if any("/" in name for name in metrics):
            self.write_text(f"step {step:,}   {text_of(metrics)}")
        else:
            known = {name: value for name, value in metrics.items() if name != "eta_s"}
            self._progress.update(self._task, completed=step, description=text_of(known))

    def write_text(self, text: str) -> None:
        """Print a line above the bar, or at its future position."""
        if self._progress is None and self._console is None:
            self._console = rich_console.Console()
        console = self._console if self._progress is None else self._progress.console
        console.print(text, markup=False, highlight=False)

    def close(self) -> None:
        """Leave the bar on the screen."""
        if self._progress is not None:
            self._progress.stop()


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
        with convert_os_errors(f"writing metrics into {path}", out):
            if not step and path.is_file() and path.stat().st_size:
                free = next(n for n in itertools.count(1) if not (out / f"metrics.{n}.jsonl").exists())
                os.replace(path, out / f"metrics.{free}.jsonl")
            kept = _records_up_to(path, step) if path.exists() else b""
            part = path.with_name(f"{NAME}.part")
            part.write_bytes(kept)
            os.replace(part, path)
            self._file = path.open("a", buffering=1, encoding="utf-8")  # a whole line is on its way to the disk

    def write(self, step: int, metrics: dict[str, float]) -> None:
        """Write a line; NaN and infinities, which JSON lacks, are written as texts such as ``"nan"``."""
        if self._file is not None:
            numbers = {name: value if abs(value) < float("inf") else str(value) for name, value in metrics.items()}
            with convert_os_errors(f"writing metrics into {self._path}", self._path.parent):
                print(json.dumps({"step": step, **numbers}), file=self._file)

    def close(self) -> None:
        """Close the file."""
        file, self._file = self._file, None
        if file is not None:
            with convert_os_errors(f"writing metrics into {self._path}", self._path.parent):
                file.close()


def _records_up_to(path: Path, step: int) -> bytes:
    """Return the records up to a step. The last ones may be damaged by a kill or a power failure."""
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


class TensorBoard(Writer):
    """Write scalars; a resumed run hides the records of an earlier one after its step.

    Raises:
        TrainError: tensorboardX is not installed, or the run has no directory.
    """

    def __init__(self) -> None:
        try:
            from tensorboardX import SummaryWriter  # of the extra `train`
        except ModuleNotFoundError:
            told = "no module tensorboardX", "it writes TensorBoard's files", pip_install("train")
            raise TrainError("TensorBoard()", *told) from None
        self._make: Any = SummaryWriter
        self._writer: Any = None

    def open(self, out: Path | None, step: int, max_steps: int) -> None:
        """Begin a file."""
        if out is None:
            raise TrainError("TensorBoard()", "out=None", "its files are in the run's directory", 'out="run7"')
        purge = {"purge_step": step + 1} if step else {}
        self._writer = self._make(logdir=str(out / "tensorboard"), **purge)

    def write(self, step: int, metrics: dict[str, float]) -> None:
        """Write a scalar for each metric."""
        for name, value in metrics.items():
            self._writer.add_scalar(name, value, step)

    def close(self) -> None:
        """End the file."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None


class WandB(Writer):
    """Write an offline run into ``OUT/wandb``.

    Args:
        project: its project.
        name: its name; by default that of the run's directory.

    Raises:
        TrainError: wandb is not installed, or the run has no directory.
    """

    def __init__(self, project: str = "sbpjax", name: str | None = None) -> None:
        try:
            import wandb  # no dependency
        except ModuleNotFoundError:
            raise TrainError("WandB()", "no module wandb", "it writes the run", "pip install wandb") from None
        self._wandb: Any = wandb
        self.project, self.name = project, name
        self._run: Any = None

    def open(self, out: Path | None, step: int, max_steps: int) -> None:
        """Begin a run."""
        if out is None:
            raise TrainError("WandB()", "out=None", "its files are in the run's directory", 'out="run7"')
        name = self.name or out.name
        self._run = self._wandb.init(project=self.project, name=name, dir=str(out), mode="offline")

    def write(self, step: int, metrics: dict[str, float]) -> None:
        """Write the metrics of a step."""
        self._run.log(metrics, step=step)

    def close(self) -> None:
        """End the run."""
        if self._run is not None:
            self._run.finish()
            self._run = None
