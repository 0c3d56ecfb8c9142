"""Checkpoint manager: a directory of checkpoints by step, with retention of the last and the best.

    with sbpjax.checkpoint.Manager("run7", keep_last=3, keep_best=1) as manager:
        manager.save(300, state, metric=loss)      # run7/step_000000300, written in the background
    step, state = manager.restore()                # the latest, or None

Only complete checkpoints count; leftovers of a crash are ignored and removed (`partial`). Without ``with``, too, the
program waits at exit for a checkpoint that is being written, however it ends.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Any

from sbpjax._core.runtime import processes
from sbpjax.errors import CheckpointError, OpValueError

from .codec import note
from .loading import load
from .manifest import CHECKSUMS, STEP
from .partial import sweep
from .reader import Contents
from .saving import PendingSave, begin

EXIT_RESTART = 75  # exit code on which the launcher restarts the job


class Manager:
    """Checkpoints of one run.

    Args:
        directory: the directory of the checkpoints; made if it is missing.
        keep_last: the number of latest checkpoints to keep; None keeps all.
        keep_best: the number of checkpoints with the best metric to keep in addition.
        better: ``"min"`` or ``"max"``: which metric is better.
        asynchronous: write in the background; the next `save`, `restore` or `wait` waits for it.
    """

    def __init__(
        self,
        directory: str | os.PathLike,
        *,
        keep_last: int | None = 3,
        keep_best: int = 0,
        better: str = "min",
        asynchronous: bool = True,
    ) -> None:
        if better not in ("min", "max") or keep_best < 0 or (keep_last is not None and keep_last < 1):
            raise OpValueError(
                "checkpoint.Manager(...)",
                f"keep_last={keep_last}, keep_best={keep_best}, better={better!r}",
                'keep_last is at least 1 or None, keep_best at least 0, better is "min" or "max"',
                'Manager(directory, keep_last=3, keep_best=1, better="min")',
            )
        self.directory = Path(directory).absolute()
        self.keep_last, self.keep_best, self.better = keep_last, keep_best, better
        self.asynchronous = asynchronous
        self.preempted = False
        self._saving: PendingSave | None = None
        self._metrics: dict[int, float | None] = {}  # as read from the files
        self.directory.mkdir(parents=True, exist_ok=True)
        if processes.current().rank == 0:
            sweep(self.directory, STEP.match)

    def __enter__(self) -> Manager:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is None:
            self.wait()
        elif self._saving is not None:  # other ranks may not reach this line; the exit hook reports the failure
            self._saving.join()

    def path(self, step: int) -> Path:
        """Return where the checkpoint of a step is."""
        return self.directory / f"step_{step:09d}"

    def steps(self) -> list[int]:
        """Return the steps of all complete checkpoints, in order."""
        found = set()
        for entry in self.directory.iterdir():
            name = entry.name.removesuffix(".old")
            if (match := STEP.match(name)) and (entry / CHECKSUMS).exists():
                found.add(int(match[1]))
        return sorted(found)

    def latest(self) -> int | None:
        """Return the step of the latest complete checkpoint, None without one."""
        steps = self.steps()
        return steps[-1] if steps else None

    def best(self) -> int | None:
        """Return the step with the best metric, None without one."""
        ranked = self._rank_steps()
        return ranked[0] if ranked else None

    def save(self, step: int, state: Any, *, metric: float | None = None) -> None:
        """Write the checkpoint of a step, and remove those no longer retained; all processes call it.

        Args:
            step: its number.
            state: as of `sbpjax.checkpoint.save`.
            metric: the value that `keep_best` compares.

        Raises:
            CheckpointError: the state cannot be stored, or the previous save failed; that is raised once.
        """
        self.wait()
        whole = {"state": state, "step": step, "metric": None if metric is None else float(metric)}
        self._metrics.pop(step, None)
        self._saving = begin(whole, self.path(step), self.asynchronous, self._clean)

    def wait(self) -> None:
        """Wait until the checkpoint that is being written is complete.

        Raises:
            CheckpointError: the checkpoint could not be written.
        """
        saving, self._saving = self._saving, None
        if saving is not None:
            saving.wait()

    def restore(self, step: int | None = None, **options: Any) -> tuple[int, Any] | None:
        """Return the step and state of the latest checkpoint, or of a step; None if there is none.

        Args:
            step: the step of the checkpoint; the latest by default.
            options: as of `sbpjax.checkpoint.load`: ``into``, ``strict``, ``placement``, ``sbp``, ``pattern``.
                Names are those of the state that was given to `save`.

        Raises:
            CheckpointError: there is no checkpoint of that step, or it is damaged.
        """
        self.wait()
        gathered = processes.current().exchange(
            f"restoring from {self.directory}", self.latest() if step is None else step
        )
        if step is None:
            self._log_incomplete()
        step = gathered[0]
        if step is None:
            return None
        return step, load(self.path(step), part="state", **options)

    def watch_preemption(self) -> None:
        """Install a SIGTERM handler that sets `preempted` on this process; `should_stop` reports it to all.

        Raises:
            CheckpointError: this is not the main thread.
        """
        if threading.current_thread() is not threading.main_thread():
            rule = "signals are handled in the main thread"
            raise CheckpointError("watch_preemption()", "another thread", rule, "call it in the main thread")
        signal.signal(signal.SIGTERM, lambda *_: setattr(self, "preempted", True))

    def should_stop(self) -> bool:
        """Return on all processes whether one of them received SIGTERM; all processes call it, e.g. once per step."""
        gathered = processes.current().exchange("should_stop()", self.preempted)
        return any(gathered.values())

    def exit_for_restart(self) -> None:
        """Wait for the checkpoint being written, and exit with the code on which the launcher restarts the job."""
        self.wait()
        sys.exit(EXIT_RESTART)

    def _log_incomplete(self) -> None:
        """Log the incomplete checkpoints that are skipped."""
        for entry in sorted(self.directory.iterdir()):
            if STEP.match(entry.name) and entry.is_dir() and not (entry / CHECKSUMS).exists():
                note(f"{entry} was not written to the end (or its {CHECKSUMS} is gone): it is ignored")

    def _rank_steps(self) -> list[int]:
        metrics = {step: metric for step in self.steps() if (metric := self._metric(step)) is not None}
        return sorted(metrics, key=lambda s: (metrics[s] if self.better == "min" else -metrics[s], -s))

    def _metric(self, step: int) -> float | None:
        """Return the metric of a checkpoint; None if it has none, or is damaged."""
        if step not in self._metrics:
            try:
                metric = Contents(self.path(step)).state.get("metric")
            except CheckpointError:
                return None
            self._metrics[step] = metric if isinstance(metric, float) and metric == metric else None
        return self._metrics[step]

    def _clean(self) -> None:
        """Remove checkpoints no longer retained, and leftovers of killed runs; rank 0 alone."""
        sweep(self.directory, STEP.match)
        if self.keep_last is None:
            return
        steps = self.steps()
        kept = {*steps[-self.keep_last :], *(self._rank_steps()[: self.keep_best] if self.keep_best else ())}
        for path in [self.path(step) for step in steps if step not in kept]:
            for found in (path.with_name(path.name + ".old"), path):
                gone = path.with_name(path.name + ".partial")  # no half of it counts as a checkpoint
                with contextlib.suppress(OSError):
                    found.rename(gone)
                    shutil.rmtree(gone, ignore_errors=True)
