"""Functions of `torch` with more options than sbpjax's own."""

from __future__ import annotations

from typing import Any

from .serialization import load as load
from .serialization import save as save


def compile(
    model=None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = None,
    mode: str | None = None,
    options: dict | None = None,
    disable: bool = False,
) -> Any:
    """Return a function or module that runs as one compiled program, with gradients; see `_core.tracing.compiled`.

    Args:
        model: a function or module; None makes a decorator.
        fullgraph: accepted: a trace is always whole.
        dynamic: accepted: a new shape compiles anew.
        backend: accepted: XLA compiles.
        mode: accepted.
        options: accepted.
        disable: return the function as it is.
    """
    if model is None:
        return lambda function: compile(function, disable=disable)
    if disable:
        return model
    from sbpjax._core.tracing.compiled import compile_function

    return compile_function(model)
