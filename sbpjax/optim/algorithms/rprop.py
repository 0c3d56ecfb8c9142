"""`Rprop`: an optimizer with a step size per element."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Unpack

import jax.numpy as jnp

from sbpjax.optim.check import params_value
from sbpjax.optim.optimizer import Optimizer
from sbpjax.optim.options import Implementation
from sbpjax.optim.rules import Array, Hyper, State, Updated, elementwise


@elementwise
def rprop(p: Array, g: Array, state: State, step: Array, hyper: Hyper, *, maximize: bool) -> Updated:
    """Grow an element's step while its gradient keeps its sign; shrink it, and wait one step, where that changes."""
    down, up, low, high = (hyper[name] for name in ("eta1", "eta2", "step1", "step2"))
    g, size = -g if maximize else g, state["step_size"]
    agreement = g * state["prev"]
    factor = jnp.where(agreement > 0, up, jnp.where(agreement < 0, down, 1.0)).astype(size.dtype)
    size = jnp.clip(size * factor, low, high).astype(size.dtype)
    kept = jnp.where(agreement < 0, 0, g)
    return p - (jnp.sign(kept) * size).astype(p.dtype), {"prev": kept, "step_size": size}


class Rprop(Optimizer):
    """Resilient backpropagation: each element has a step size of its own and follows the sign of its gradient.

    Args:
        lr: the first step size.
        etas: the factors of the step size where the gradient changes its sign, and where it keeps it.
        step_sizes: the least and the largest step size.

    Source: Riedmiller and Braun, A Direct Adaptive Method for Faster Backpropagation Learning (1993).
    """

    hyper = ("eta1", "eta2", "step1", "step2")
    _dynamic = ("lr", "etas", "step_sizes")
    _not_negative = ("lr",)
    _state_names = ("prev", "step_size")
    _rule = staticmethod(rprop)

    def __init__(
        self,
        params: Iterable,
        lr: float = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        maximize: bool = False,
        **implementation: Unpack[Implementation],
    ):
        options = {"lr": lr, "etas": etas, "step_sizes": step_sizes, "maximize": maximize}
        super().__init__(params, options, implementation)

    def _check(self, group: dict[str, Any]) -> None:
        super()._check(group)
        down, up = group["etas"]
        if not 0 < down < 1 < up:
            raise params_value(f"etas={down}, {up}", f"Invalid eta values: {down}, {up}", "etas=(0.5, 1.2)")

    def _numbers(self, group: dict[str, Any]) -> tuple[Any, ...]:
        return (*group["etas"], *group["step_sizes"])

    def _initial(self, name: str, group: dict[str, Any]) -> float:
        return float(group["lr"]) if name == "step_size" else 0.0

    def _flags(self, group: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
        return (("maximize", bool(group["maximize"])),)
