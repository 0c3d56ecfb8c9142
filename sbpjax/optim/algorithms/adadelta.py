"""`Adadelta` optimizer: step sizes from running means of squared gradients and squared steps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Unpack

import jax.numpy as jnp

from sbpjax.optim.check import in_unit_range
from sbpjax.optim.optimizer import Optimizer
from sbpjax.optim.options import Implementation
from sbpjax.optim.rules import Array, Hyper, State, Updated, decay_gradient, descend, elementwise


@elementwise
def adadelta(p: Array, g: Array, state: State, step: Array, hyper: Hyper, *, maximize: bool, decay: bool) -> Updated:
    """``v`` and ``a``: running means of ``g²`` and ``u²``; ``u = g sqrt(a + eps) / sqrt(v + eps)``, ``p -= lr u``."""
    rho, eps, a = hyper["rho"], hyper["eps"], state["acc_delta"]
    g = decay_gradient(p, g, hyper, maximize, decay)
    v = rho * state["square_avg"] + (1 - rho) * g * g
    u = g * jnp.sqrt(a + eps) / jnp.sqrt(v + eps)
    return descend(p, u, hyper["lr"]), {"square_avg": v, "acc_delta": rho * a + (1 - rho) * u * u}


class Adadelta(Optimizer):
    """``v = rho * v + (1 - rho) * g²``, ``u = g * sqrt(a + eps) / sqrt(v + eps)``, ``p = p - lr * u``.

    Here ``a`` is the running mean of ``u²``.

    Args:
        lr: factor of the step.
        rho: decay rate of both running means.
        eps: added under both roots.

    Source: Zeiler, ADADELTA: An Adaptive Learning Rate Method (2012).
    """

    hyper = ("lr", "rho", "eps", "weight_decay")
    _dynamic = hyper
    _not_negative = ("lr", "eps", "weight_decay")
    _state_names = ("square_avg", "acc_delta")
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
        super()._check(group)
        in_unit_range("rho", group["rho"])
