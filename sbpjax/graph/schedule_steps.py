"""Learning rate schedules step together with a graph's state, also across an interrupt.

before = held(schedules, groups)     # last_step = 41, lr = 0.05
…                                    # the program: the state is that of step 42
step()                               # interrupted: last_step = 42, lr = 0.05
again(before, steps)                 # back to before, and the steps taken: last_step = 42, lr = 0.049
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from sbpjax.optim.lr_scheduler import LRScheduler


class RateLog:
    """The learning rates of a graph's steps, as OneFlow's debug mode writes them.

    The file is ``log/<host>/<pid>-train_step2lr.csv`` below the working directory, with a row for each group of
    parameters that a schedule owns.
    """

    def __init__(self) -> None:
        self._path = Path("log", socket.gethostname(), f"{os.getpid()}-train_step2lr.csv")
        self._step = 0

    def write(self, groups: Iterable[dict]) -> None:
        """Add the rates of a step.

        Raises:
            OSError: the file cannot be written.
        """
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with open(self._path, "a") as file:
            if not file.tell():
                file.write("train_step, lr\n")
            file.writelines(f"{self._step}, {float(group['lr']):.6f}\n" for group in groups)
        self._step += 1


def rate_log() -> RateLog | None:
    """Return a log of rates under ``ONEFLOW_DEBUG_MODE``, else None."""
    return RateLog() if os.environ.get("ONEFLOW_DEBUG_MODE", "").lower() in ("1", "true", "on", "yes") else None


def held_attributes(schedules: Iterable[Any], groups: Iterable[dict]) -> list[tuple[dict, dict]]:
    """Return the attributes that steps of schedules may change, with copies.

    Args:
        schedules: the schedules; those that they are made of count too.
        groups: the groups of parameters.
    """
    found = [(group, dict(group)) for group in groups]
    return found + [
        (vars(s), dict(vars(s))) for schedule in schedules for s in _parts(schedule) if hasattr(s, "__dict__")
    ]


def _parts(schedule: Any) -> Iterator[Any]:
    yield schedule
    for value in list(getattr(schedule, "__dict__", {}).values()):
        for part in value if value.__class__ in (list, tuple) else (value,):
            if isinstance(part, LRScheduler):
                yield from _parts(part)


def redo_steps(before: list[tuple[dict, dict]], steps: Iterable[Callable[[], None]]) -> None:
    """Take interrupted steps of schedules once more, from where they began."""
    for fields, copy in before:
        fields.update(copy)
    with contextlib.suppress(Exception):  # a schedule that fails has raised already
        for step in steps:
            step()
