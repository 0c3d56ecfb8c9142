"""`torch.cuda.nvtx` and `torch.cuda.profiler`: named stretches in a trace."""

from __future__ import annotations

import contextlib

from sbpjax.profiler import range_pop as range_pop
from sbpjax.profiler import range_push as range_push
from sbpjax.profiler import record_function as range


@contextlib.contextmanager
def profile():
    """Begin and end the recording of a tool outside; nothing changes here."""
    yield


def start() -> None:
    """Begin the recording of a tool outside; nothing changes here."""


stop = start


def mark(msg: str) -> None:
    """Mark a moment."""
    with range(msg):
        pass


__all__ = ["mark", "profile", "range", "range_pop", "range_push", "start", "stop"]
