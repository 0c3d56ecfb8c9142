"""`Adagrad`: steps divided by the root of the sum of all squared gradients so far."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Unpack

import jax
import jax.numpy as jnp

from sbpjax.optim.check import at_least_zero, is_on
from sbpjax.optim.optimizer import Optimizer
from sbpjax.optim.options import Implementation
from sbpjax.optim.rules import Arrays, States, decayed, descend


def adagrad(
    params: Arrays,
    grads: Arrays,
    states: States,
    step: jax.Array,
    hyper: dict[str, Any],
    *,
    maximize: bool,
    decay: bool,
) -> tuple[Arrays, States]:
    """``s += g²``, ``p -= lr / (1 + (t - 1) lr_decay) * g / (sqrt(s) + eps)``."""
    grads = decayed(params, grads, hyper, maximize, decay)
    sums = [s + g * g for g, s in zip(grads, states["sum"])]
    updates = [g / (jnp.sqrt(s) + hyper["eps"]) for g, s in zip(grads, sums)]
    fall = 1 / (1 + (step - 1) * hyper["lr_decay"])  # float64, as the step is int64
    updates = [u * fall.astype(jnp.promote_types(u.dtype, jnp.float32)) for u in updates]
    return descend(params, updates, hyper["lr"]), {"sum": sums}


class Adagrad(Optimizer):
    """``s = s + g²``, ``p = p - lr / (1 + (t - 1) * lr_decay) * g / (sqrt(s) + eps)``.

    Args:
        params: the parameters, or dicts with ``"params"`` and options of their own.
        lr: step size.
        lr_decay: how fast the step size falls with the step count.
        weight_decay: L2 decay, added to the gradient.
        initial_accumulator_value: what the sum of squares starts from.
        eps: added to the denominator.
        maximize: climb instead.
        implementation: PyTorch's `foreach`, `fused` and `capturable`, without effect.

    Source: Duchi, Hazan and Singer, Adaptive Subgradient Methods (2011).
    """

    hyper = ("lr", "lr_decay", "weight_decay", "eps")
    _dynamic = hyper
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

    def _check(self, group: dict[str, Any]) -> None:
        for name in ("lr", "lr_decay", "weight_decay", "initial_accumulator_value", "eps"):
            at_least_zero(name, group[name])

    def _states(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("sum",)

    def _initial(self, name: str, group: dict[str, Any]) -> float:
        return group["initial_accumulator_value"]

    def _flags(self, group: dict[str, Any]) -> tuple[tuple[str, bool], ...]:
        return (("maximize", bool(group["maximize"])), ("decay", is_on(group["weight_decay"])))
