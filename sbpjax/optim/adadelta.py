"""`Adadelta`: steps in the units of the parameter, from running means of squared gradients and squared steps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Unpack

import jax
import jax.numpy as jnp

from sbpjax.optim.check import at_least_zero, in_unit_range, is_on
from sbpjax.optim.optimizer import Optimizer
from sbpjax.optim.options import Implementation
from sbpjax.optim.rules import Arrays, States, decayed, descend


def adadelta(
    params: Arrays,
    grads: Arrays,
    states: States,
    step: jax.Array,
    hyper: dict[str, Any],
    *,
    maximize: bool,
    decay: bool,
) -> tuple[Arrays, States]:
    """``v`` and ``a``: running means of ``g²`` and ``u²``; ``u = g sqrt(a + eps) / sqrt(v + eps)``, ``p -= lr u``."""
    rho, eps = hyper["rho"], hyper["eps"]
    grads = decayed(params, grads, hyper, maximize, decay)
    squares = [rho * v + (1 - rho) * g * g for g, v in zip(grads, states["square_avg"])]
    updates = [g * jnp.sqrt(a + eps) / jnp.sqrt(v + eps) for g, v, a in zip(grads, squares, states["acc_delta"])]
    moved = [rho * a + (1 - rho) * u * u for u, a in zip(updates, states["acc_delta"])]
    return descend(params, updates, hyper["lr"]), {"square_avg": squares, "acc_delta": moved}


class Adadelta(Optimizer):
    """``v = rho * v + (1 - rho) * g²``, ``u = g * sqrt(a + eps) / sqrt(v + eps)``, ``p = p - lr * u``.

    Here ``a`` is the running mean of ``u²``.

    Args:
        params: the parameters, or dicts with ``"params"`` and options of their own.
        lr: factor of the step.
        rho: decay rate of both running means.
        eps: added under both roots.
        weight_decay: L2 decay, added to the gradient.
        maximize: climb instead.
        implementation: PyTorch's `foreach`, `fused` and `capturable`, without effect.

    Source: Zeiler, ADADELTA: An Adaptive Learning Rate Method (2012).
    """

    hyper = ("lr", "rho", "eps", "weight_decay")
    _dynamic = hyper
    _rule = staticmethod(adadelta)

    def __init__(
        self,
        params: Iterable,
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        maximize: bool = False,
        **implementation: Unpack[Implementation],
    ):
        options = {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}
        super().__init__(params, options, implementation)

    def _check(self, group: dict[str, Any]) -> None:
        for name in ("lr", "eps", "weight_decay"):
            at_least_zero(name, group[name])
        in_unit_range("rho", group["rho"])

    def _states(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("square_avg", "acc_delta")

    def _flags(self, group: dict[str, Any]) -> tuple[tuple[str, bool], ...]:
        return (("maximize", bool(group["maximize"])), ("decay", is_on(group["weight_decay"])))
