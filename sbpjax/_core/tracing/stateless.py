"""Former module of `sbpjax.func.functional_call`, kept for imports."""

from __future__ import annotations

from typing import Any

from sbpjax.nn.module import Module


def functional_call(
    module: Module,
    parameters_and_buffers: Any,
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with other parameters and buffers; see `sbpjax.func.functional_call`."""
    from .functional_call import functional_call as call

    given = () if args is None else args
    return call(module, parameters_and_buffers, given, kwargs, tie_weights=tie_weights, strict=strict)
