"""`LAMB` optimizer: Adam with a layer-wise trust ratio, for large batches."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Unpack

import jax
import jax.numpy as jnp

from sbpjax.optim.algorithms.adam import MomentOptimizer
from sbpjax.optim.check import params_value
from sbpjax.optim.options import Implementation
from sbpjax.optim.rules import Array, Hyper, State, Updated, adam_direction, decay_gradient, descend


def lamb(
    p: Array, g: Array, state: State, step: Array, hyper: Hyper, *, maximize: bool, decay: bool, decoupled: bool,
    correct: bool,
) -> Updated:  # fmt: skip
    """``u = m̂ / (sqrt(v̂) + eps)``, ``p -= lr * |p| / |u| * (u + weight_decay * p)``; a ratio of zero norms is 1."""
    g = decay_gradient(p, g, hyper, maximize, decay and not decoupled)
    u, state = adam_direction(g, state, step, hyper, correct=correct)
    ratio = _ratio(_norm(p), _norm(u))
    if decay and decoupled:
        u = u + hyper["weight_decay"] * p
    return descend(p, ratio * u, hyper["lr"]), state


def _norm(x: jax.Array) -> jax.Array:
    return jnp.sqrt(jnp.sum(x * x))


def _ratio(weight: jax.Array, update: jax.Array) -> jax.Array:
    both = (weight > 0) & (update > 0)
    return jnp.where(both, weight / jnp.where(both, update, 1), 1).astype(weight.dtype)


class LAMB(MomentOptimizer):
    """``u = m̂ / (sqrt(v̂) + eps)`` as in Adam, ``p = p - lr * |p| / |u| * (u + weight_decay * p)``.

    Args:
        weight_decay: decay of the weights.
        adam_w_mode: apply it to the weights themselves; otherwise it is added to the gradient.
        do_bias_correction: divide the running means by their weights so far.
        amsgrad: not defined for this method.

    Raises:
        ValueError: `amsgrad` is set.

    Source: You et al., Large Batch Optimization for Deep Learning: Training BERT in 76 minutes (2020).
    """

    _rule = staticmethod(lamb)

    def __init__(
        self,
        params: Iterable,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        adam_w_mode: bool = True,
        do_bias_correction: bool = True,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        **implementation: Unpack[Implementation],
    ):
        options = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad}
        options |= {"adam_w_mode": adam_w_mode, "do_bias_correction": do_bias_correction, "maximize": maximize}
        super().__init__(params, options, implementation)

    def _check(self, group: dict[str, Any]) -> None:
        super()._check(group)
        if group["amsgrad"]:
            raise params_value("amsgrad=True", "LAMB does not support AMSGrad variant", "amsgrad=False")

    def _flags(self, group: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
        maximize, decay, _ = super()._flags(group)
        own = ("decoupled", bool(group["adam_w_mode"])), ("correct", bool(group["do_bias_correction"]))
        return (maximize, decay, *own)
