"""`Adagrad` optimizer: steps divided by the root of the sum of all squared gradients."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Unpack

import jax.numpy as jnp

from sbpjax.optim.check import is_on
from sbpjax.optim.optimizer import Optimizer
from sbpjax.optim.options import Implementation
from sbpjax.optim.rules import Array, Hyper, State, Updated, decay_gradient, descend, elementwise


@elementwise
def adagrad(p: Array, g: Array, state: State, step: Array, hyper: Hyper, *, maximize: bool, decay: bool) -> Updated:
    """``s += g²``, ``p -= lr / (1 + (t - 1) lr_decay) * g / (sqrt(s) + eps)``."""
    g = decay_gradient(p, g, hyper, maximize, decay)
    s = state["sum"] + g * g
    u = g / (jnp.sqrt(s) + hyper["eps"])
    fall = 1 / (1 + (step - 1) * hyper["lr_decay"])  # float64, as the step is int64
    return descend(p, u * fall.astype(jnp.promote_types(u.dtype, jnp.float32)), hyper["lr"]), {"sum": s}


class Adagrad(Optimizer):
    """``s = s + g²``, ``p = p - lr / (1 + (t - 1) * lr_decay) * g / (sqrt(s) + eps)``.

    Args:
        lr_decay: how fast the step size falls with the step count.
        initial_accumulator_value: initial value of the sum of squares.

    Source: Duchi, Hazan and Singer, Adaptive Subgradient Methods (2011).
    """

    hyper = ("lr", "lr_decay", "weight_decay", "eps")
    _dynamic = hyper
    _not_negative = ("lr", "lr_decay", "weight_decay", "initial_accumulator_value", "eps")
    _state_names = ("sum",)
    _rule = staticmethod(adagrad)
    support_sparse = True

    def __init__(
        self,
        params: Iterable,
        lr: float = 1e-2,
        lr_decay: float = 0.0,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        eps: float = 1e-10,
        *,
        maximize: bool = False,
        **implementation: Unpack[Implementation],
    ):
        options = {"lr": lr, "lr_decay": lr_decay, "weight_decay": weight_decay, "eps": eps, "maximize": maximize}
        super().__init__(params, options | {"initial_accumulator_value": initial_accumulator_value}, implementation)

    def _initial(self, name: str, group: dict[str, Any]) -> float:
        return group["initial_accumulator_value"]

    def _leaves_rows(self, group: dict[str, Any]) -> bool:
        return not is_on(group["weight_decay"])
