"""`Adafactor` optimizer: Adam with factored second moments, two vectors per matrix.

A weight of 4096 × 4096 has 16.8 million second moments; here it has 8,192 numbers instead, which are the same on all
ranks however the weight is split.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Unpack

import jax
import jax.numpy as jnp

from sbpjax.optim.check import at_least_zero, params_value
from sbpjax.optim.optimizer import Optimizer
from sbpjax.optim.options import Implementation
from sbpjax.optim.rules import Array, Hyper, State, Updated


def adafactor(
    p: Array, g: Array, state: State, step: Array, hyper: Hyper, *, maximize: bool, decay: bool, tiny: float | None
) -> Updated:
    """``V = R C / mean(R)`` from row means R and column means C of g², ``u = g / sqrt(V)`` cut to a mean square of d².

    ``p -= max(eps2, rms(p)) min(lr, 1 / sqrt(t)) u``.
    """
    lr = hyper["lr"]
    weight = step.astype(jnp.float32) ** hyper["beta2_decay"]
    pace = jnp.minimum(lr, 1 / jnp.sqrt(step.astype(jnp.float32)))
    g = -g if maximize else g
    eps1 = jnp.finfo(p.dtype).eps if tiny is None else tiny
    rate = jnp.maximum(hyper["eps2"], _rms(p)) * pace
    if decay:
        p = p * (1 - lr * hyper["weight_decay"]).astype(p.dtype)
    squares = g * g
    if g.ndim > 1:
        rows = _interpolate(state["row_var"], jnp.mean(squares, -1, keepdims=True), weight)
        columns = _interpolate(state["col_var"], jnp.mean(squares, -2, keepdims=True), weight)
        variance = rows * columns / jnp.maximum(jnp.mean(rows, -2, keepdims=True), eps1)
        new = {"row_var": rows, "col_var": columns}
    else:
        variance = _interpolate(state["variance"], squares, weight)
        new = {"variance": variance}
    u = g * jax.lax.rsqrt(jnp.maximum(variance, eps1 * eps1)).astype(g.dtype)
    cut = jnp.maximum(1.0, _rms(u) / hyper["d"])
    return p - ((rate / cut).astype(p.dtype) * u).astype(p.dtype), new


def _rms(x: jax.Array) -> jax.Array:
    return jnp.sqrt(jnp.mean(x * x))


def _interpolate(old: jax.Array, new: jax.Array, weight: jax.Array) -> jax.Array:
    return old + weight.astype(old.dtype) * (new.astype(old.dtype) - old)


class Adafactor(Optimizer):
    """Adam without a mean, with the second moments of a matrix kept as row and column means.

    Args:
        lr: the largest relative step size.
        beta2_decay: the weight of a new gradient in step t is ``t ** beta2_decay``.
        eps: the least mean of squares (None: the dtype's own epsilon), and the least size of a parameter.
        d: the largest root mean square of an update.
        weight_decay: decay of the weights themselves, times `lr`.

    Source: Shazeer and Stern, Adafactor: Adaptive Learning Rates with Sublinear Memory Cost (2018).
    """

    hyper = ("lr", "beta2_decay", "eps2", "d", "weight_decay")
    _dynamic = ("lr", "beta2_decay", "d", "weight_decay")
    _not_negative = ("lr", "weight_decay")
    _rule = staticmethod(adafactor)

    def __init__(
        self,
        params: Iterable,
        lr: float = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        **implementation: Unpack[Implementation],
    ):
        options = {"lr": lr, "beta2_decay": beta2_decay, "eps": eps, "d": d, "weight_decay": weight_decay}
        super().__init__(params, options | {"maximize": maximize}, implementation)

    def _check(self, group: dict[str, Any]) -> None:
        super()._check(group)
        for eps in group["eps"]:
            at_least_zero("eps", 0.0 if eps is None else eps)
        if group["beta2_decay"] > 0:
            seen = f"beta2_decay={group['beta2_decay']}"
            raise params_value(seen, "beta2_decay should be <= 0", "beta2_decay=-0.8")
        if group["d"] < 1:
            raise params_value(f"d={group['d']}", "Clipping threshold d should be >= 1", "d=1.0")

    def _numbers(self, group: dict[str, Any]) -> tuple[Any, ...]:
        return (group["lr"], group["beta2_decay"], group["eps"][1], group["d"], group["weight_decay"])

    def _states_of(self, param: Any, group: dict[str, Any]) -> tuple[str, ...]:
        return ("row_var", "col_var") if param.ndim > 1 else ("variance",)

    def _shape(self, name: str, param: Any) -> tuple[int, ...] | None:
        if name == "variance":
            return None
        shape = tuple(param.shape)
        return (*shape[:-1], 1) if name == "row_var" else (*shape[:-2], 1, shape[-1])

    def _flags(self, group: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
        return (*super()._flags(group), ("tiny", group["eps"][0]))
