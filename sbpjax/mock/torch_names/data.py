"""`torch.utils.data`: decorators of datapipes, which change nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class functional_datapipe:
    """A decorator that makes a datapipe a method of datapipes.

    Args:
        name: the method.
        enable_df_api_tracing: accepted.
    """

    def __init__(self, name: str, enable_df_api_tracing: bool = False) -> None:
        self.name = name

    def __call__(self, cls: Any) -> Any:
        from sbpjax.utils.data import IterDataPipe, MapDataPipe

        base: Any = MapDataPipe if MapDataPipe in cls.__mro__ else IterDataPipe
        setattr(base, self.name, lambda pipe, *args, **options: cls(pipe, *args, **options))
        return cls


def guaranteed_datapipes_determinism(mode: bool = True) -> Any:
    """Return a context that changes nothing."""
    import contextlib

    return contextlib.nullcontext()


def non_deterministic(arg: Any) -> Callable:
    """Return the class itself."""
    return arg if isinstance(arg, type) else lambda cls: cls


def runtime_validation(f: Callable) -> Callable:
    """Return the function itself."""
    return f
