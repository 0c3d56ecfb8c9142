"""Modules of `torch.distributed` that only have names here: launchers, hooks of gradients, optimizers in shards."""

from __future__ import annotations

from collections.abc import Callable

from .absent import absences


def record(fn: Callable, error_handler: object = None) -> Callable:
    """Return the function itself: what it raises is shown as it is."""
    return fn


__getattr__ = absences(
    "torch.distributed",
    "gradients, optimizer states and processes are shared by layouts here",
    "a global module; python -m sbpjax.distributed.launch script.py",
)
