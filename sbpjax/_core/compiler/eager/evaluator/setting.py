"""Whether eager ops are evaluated: by the environment, `use_deterministic_algorithms`, and `compiled` functions."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from typing import TypeVar

import jax

_F = TypeVar("_F", bound=Callable)


class _Setting(threading.local):
    """Whether ops may be evaluated.

    Attributes:
        allowed: not under `use_deterministic_algorithms`, in any thread.
        held: within how many calls of `compiled` functions this thread is.
    """

    allowed = os.environ.get("SBPJAX_EVALUATE", "") != "0"
    held = 0


setting = _Setting()


def is_on() -> bool:
    """Return whether ops are evaluated in this process."""
    return setting.allowed and jax.default_backend() == "cpu"


def allow(allowed: bool) -> None:
    """Let ops be evaluated, unless the environment forbids it, or let all be compiled."""
    _Setting.allowed = allowed and os.environ.get("SBPJAX_EVALUATE", "") != "0"


def compiled(function: _F) -> _F:
    """Return a function whose ops are compiled, also those of local tensors: its values have one set of bits."""

    @functools.wraps(function)
    def call(*args, **options):
        setting.held += 1
        try:
            return function(*args, **options)
        finally:
            setting.held -= 1

    return call  # type: ignore[return-value]
