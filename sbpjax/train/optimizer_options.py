"""Options of the optimizer across restarts: a resumed run takes those that were changed since its checkpoint.

    checkpoint of step 100, made with lr 0.003 and weight_decay 0.01        state: lr 0.0021 (of a schedule)
    resumed with lr 0.001 and weight_decay 0.01                             lr 0.0007, base rate of the schedule 0.001
    resumed with lr 0.003 and weight_decay 0.01                             lr 0.0021: as the checkpoint says

A checkpoint has two kinds of options: those that the optimizer was made with, and their values at its step, which
schedules and hooks may have changed since. Only an option that is made with another value now leaves the second kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sbpjax import optim

_PLAIN = (bool, int, float, str, type(None))


def made_with(optimizer: optim.Optimizer) -> list[dict[str, Any]]:
    """Return the options that the groups of a new optimizer were made with, numbers and texts only.

    Example:
        >>> made_with(optim.SGD(flow.nn.Linear(2, 2).parameters(), lr=0.1))[0]["lr"]
        0.1
    """
    found = []
    for group in optimizer.param_groups:
        options = {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in group.items()
            if all(isinstance(v, _PLAIN) for v in (value if isinstance(value, list | tuple) else [value]))
        }
        options["lr"] = options.pop("initial_lr", options.get("lr"))  # a schedule has changed the rate already
        found.append(options)
    return found


def take_changed(
    optimizer: optim.Optimizer, schedule: Any, before: Sequence[dict[str, Any]], now: Sequence[dict[str, Any]]
) -> list[str]:
    """Set the options that were changed since a checkpoint was begun, and return a line for each.

    Args:
        optimizer: restored.
        schedule: restored, or None; its present rate is scaled as the base rate is.
        before: the value of `made_with` in the run that wrote the checkpoint.
        now: the same of this run.
    """
    lines = []
    for index, (group, old, new) in enumerate(zip(optimizer.param_groups, before, now)):
        for name in sorted(new.keys() & old.keys()):
            if new[name] == old[name]:
                continue
            where = f" of group {index}" if len(now) > 1 else ""
            lines.append(f"{name}{where}: {old[name]} → {new[name]}")
            if name == "lr":
                _set_rate(group, index, schedule, old["lr"], new["lr"])
            else:
                group[name] = tuple(new[name]) if isinstance(group[name], tuple) else new[name]
    return lines


def _set_rate(group: dict, index: int, schedule: Any, old: float, new: float) -> None:
    group["lr"] = group["lr"] * (new / old) if schedule is not None and old else new
    if "initial_lr" in group:
        group["initial_lr"] = new
    for part in _parts(schedule):
        part.base_lrs[index] = new
        part.last_lr[index] = group["lr"]


def _parts(schedule: Any) -> Iterator[Any]:
    """Yield a schedule and those that it is made of, as far as they have base rates."""
    if hasattr(schedule, "base_lrs"):
        yield schedule
    for part in getattr(schedule, "schedulers", ()):
        yield from _parts(part)
