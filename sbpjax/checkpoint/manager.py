"""A directory of checkpoints by step: keep the last, keep the best, find the last complete one.

    manager = sbpjax.checkpoint.Manager("run7", keep_last=3, keep_best=1)
    manager.save(300, state, metric=loss)          # run7/step_000000300, written in the background
    step, state = manager.restore()                # the latest, or None

A step counts when its checkpoint is complete; what a crash left behind is not looked at.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from sbpjax import world as _world
from sbpjax.errors import CheckpointError, OpValueError, message

from .loading import load, located
from .saving import CHECKSUMS, Saving, save

_NAME = re.compile(r"step_(\d{9})$")
EXIT_RESTART = 75  # what the launcher starts again from


class Manager:
    """Checkpoints of one run.

    Args:
        directory: where they are; made if it is missing.
        keep_last: how many of the latest to keep; None keeps all.
        keep_best: how many of those with the best metric to keep besides.
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
                message(
                    "checkpoint.Manager(...)",
                    f"keep_last={keep_last}, keep_best={keep_best}, better={better!r}",
                    'keep_last is at least 1 or None, keep_best at least 0, better is "min" or "max"',
                    'Manager(directory, keep_last=3, keep_best=1, better="min")',
                )
            )
        self.directory = Path(directory).absolute()
        self.keep_last, self.keep_best, self.better = keep_last, keep_best, better
        self.asynchronous = asynchronous
        self.preempted = False
        self._saving: Saving | None = None
        self.directory.mkdir(parents=True, exist_ok=True)

    def path(self, step: int) -> Path:
        """Return where the checkpoint of a step is."""
        return self.directory / f"step_{step:09d}"

    def steps(self) -> list[int]:
        """Return the steps of all complete checkpoints, in order."""
        found = set()
        for entry in self.directory.iterdir():
            name = entry.name.removesuffix(".old")
            if (match := _NAME.match(name)) and (entry / CHECKSUMS).exists():
                found.add(int(match[1]))
        return sorted(found)

    def latest(self) -> int | None:
        """Return the step of the latest complete checkpoint, None without one."""
        steps = self.steps()
        return steps[-1] if steps else None

    def best(self) -> int | None:
        """Return the step with the best metric, None without one."""
        ranked = self._ranked()
        return ranked[0] if ranked else None

    def save(self, step: int, state: Any, *, metric: float | None = None) -> None:
        """Write the checkpoint of a step, and remove those that are no longer to be kept; all processes call it."""
        self.wait()
        whole = {"state": state, "step": step, "metric": None if metric is None else float(metric)}
        self._saving = save(whole, self.path(step), asynchronous=self.asynchronous)
        if not self.asynchronous:
            self.wait()

    def wait(self) -> None:
        """Wait until the checkpoint that is being written is complete; all processes call it."""
        if self._saving is None:
            return
        saving, self._saving = self._saving, None
        saving.wait()
        if _world.current().rank == 0:
            self._clean()

    def restore(self, step: int | None = None, **options: Any) -> tuple[int, Any] | None:
        """Return the step and state of the latest checkpoint, or of a step; None if there is none.

        Args:
            step: which one.
            options: as of `sbpjax.checkpoint.load`: ``into``, ``placement``, ``sbp``, ``pattern``.

        Raises:
            CheckpointError: there is none of that step, or it is damaged.
        """
        self.wait()
        told = _world.current().exchange(f"restoring from {self.directory}", self.latest() if step is None else step)
        step = told[0]
        if step is None:
            return None
        if "into" in options:
            options["into"] = {"state": options["into"]}
        if "pattern" in options:
            patterns = options["pattern"]
            patterns = [patterns] if isinstance(patterns, str) else patterns
            options["pattern"] = [f"state/{p}" for p in patterns]
        return step, load(self.path(step), **options)["state"]

    def watch_preemption(self) -> None:
        """From now on, SIGTERM sets `preempted` on this process; `should_stop` tells all.

        Raises:
            CheckpointError: this is not the main thread.
        """
        if threading.current_thread() is not threading.main_thread():
            rule = "signals are handled in the main thread"
            raise CheckpointError(message("watch_preemption()", "another thread", rule, "call it in the main thread"))
        signal.signal(signal.SIGTERM, lambda *_: setattr(self, "preempted", True))

    def should_stop(self) -> bool:
        """Return on all processes whether one of them was told to stop; all processes call it, e.g. once per step."""
        told = _world.current().exchange("should_stop()", self.preempted)
        return any(told.values())

    def exit_for_restart(self) -> None:
        """Wait for the checkpoint that is being written and end with the code that the launcher starts again from."""
        self.wait()
        sys.exit(EXIT_RESTART)

    def _ranked(self) -> list[int]:
        metrics = {}
        for step in self.steps():
            text = (located(self.path(step)) / "state.json").read_text(encoding="utf-8")
            metric = json.loads(text)["state"].get("metric")
            if metric is not None and metric == metric:
                metrics[step] = metric
        return sorted(metrics, key=lambda s: (metrics[s] if self.better == "min" else -metrics[s], -s))

    def _clean(self) -> None:
        if self.keep_last is None:
            return
        kept = {*self.steps()[-self.keep_last :], *self._ranked()[: self.keep_best]}
        for step in self.steps():
            if step not in kept:
                shutil.rmtree(self.path(step), ignore_errors=True)
                shutil.rmtree(self.path(step).with_name(self.path(step).name + ".old"), ignore_errors=True)
