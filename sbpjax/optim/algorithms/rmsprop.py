"""`RMSprop` optimizer: steps divided by the root of a running mean of squared gradients."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Unpack

import jax.numpy as jnp

from sbpjax.optim.check import is_on
from sbpjax.optim.optimizer import Optimizer
from sbpjax.optim.options import Implementation
from sbpjax.optim.rules import Array, Hyper, State, Updated, decay_gradient, descend, elementwise


@elementwise
def rmsprop(
    p: Array, g: Array, state: State, step: Array, hyper: Hyper, *, maximize: bool, decay: bool, momentum: bool,
    centered: bool, eps_outside: bool = False,
) -> Updated:  # fmt: skip
    """``v = alpha v + (1 - alpha) g²``, ``u = g / sqrt(v + eps)``, ``b = momentum b + u``, ``p -= lr b``.

    With `centered`, the square of the running mean of the gradient is taken off v, which makes it a variance. With
    `eps_outside`, ``u = g / (sqrt(v) + eps)``.
    """
    alpha, eps = hyper["alpha"], hyper["eps"]
    g = decay_gradient(p, g, hyper, maximize, decay)
    v = alpha * state["square_avg"] + (1 - alpha) * g * g
    new = {"square_avg": v}
    if centered:
        m = new["grad_avg"] = state["grad_avg"] + (1 - alpha) * (g - state["grad_avg"])
        v = v - m * m
    u = g / (jnp.sqrt(v) + eps if eps_outside else jnp.sqrt(v + eps))
    if momentum:
        u = new["momentum_buffer"] = hyper["momentum"] * state["momentum_buffer"] + u
    return descend(p, u, hyper["lr"]), new


class RMSprop(Optimizer):
    """``v = alpha * v + (1 - alpha) * g²``, ``p = p - lr * g / sqrt(v + eps)``.

    `eps` is added under the root, as in OneFlow; `torch.optim.RMSprop` under the name torch adds it to the root.

    Args:
        alpha: decay rate of the running mean.
        eps: added under the root.
        momentum: decay rate of the moving sum of steps; 0 keeps none.
        centered: divide by the root of the variance rather than of the mean square.

    Source: Hinton, Neural Networks for Machine Learning, lecture 6 (2012); Graves (2013) for the centered form.
    """

    hyper = ("lr", "alpha", "eps", "weight_decay", "momentum")
    _dynamic = hyper
    _not_negative = hyper
    _rule = staticmethod(rmsprop)

    def __init__(
        self,
        params: Iterable,
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
        *,
        maximize: bool = False,
        **implementation: Unpack[Implementation],
    ):
        options = {"lr": lr, "alpha": alpha, "eps": eps, "weight_decay": weight_decay, "momentum": momentum}
        super().__init__(params, options | {"centered": centered, "maximize": maximize}, implementation)

    def _states(self, group: dict[str, Any]) -> tuple[str, ...]:
        centre = ("grad_avg",) if group["centered"] else ()
        return ("square_avg", *centre, "momentum_buffer") if is_on(group["momentum"]) else ("square_avg", *centre)

    def _flags(self, group: dict[str, Any]) -> tuple[tuple[str, bool], ...]:
        own = ("momentum", is_on(group["momentum"])), ("centered", bool(group["centered"]))
        return (*super()._flags(group), *own)
