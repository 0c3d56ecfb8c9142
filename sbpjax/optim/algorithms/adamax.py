"""`Adamax`, `NAdam` and `RAdam` optimizers: three variants of Adam."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Unpack

import jax.numpy as jnp

from sbpjax.optim.algorithms.adam import MomentOptimizer
from sbpjax.optim.options import Implementation
from sbpjax.optim.rules import Array, Hyper, State, Updated, decay_gradient, descend, elementwise


@elementwise
def adamax(
    p: Array, g: Array, state: State, step: Array, hyper: Hyper, *, maximize: bool, decay: bool, decoupled: bool
) -> Updated:
    """``m = b1 m + (1 - b1) g``, ``u = max(b2 u, |g| + eps)``, ``p -= lr / (1 - b1^t) * m / u``."""
    b1, b2 = hyper["beta1"], hyper["beta2"]
    g = decay_gradient(p, g, hyper, maximize, decay)
    m = state["exp_avg"] + (1 - b1) * (g - state["exp_avg"])
    u = jnp.maximum(b2 * state["exp_inf"], jnp.abs(g) + hyper["eps"])
    rate = hyper["lr"] / (1 - b1**step)
    return descend(p, m / u, _number(rate, p)), {"exp_avg": m, "exp_inf": u}


@elementwise
def nadam(
    p: Array, g: Array, state: State, step: Array, hyper: Hyper, *, maximize: bool, decay: bool, decoupled: bool
) -> Updated:
    """Adam with Nesterov's momentum, whose weight ``mu_t = b1 (1 - 0.96^(t * momentum_decay) / 2)`` rises.

    ``p -= lr ((1 - mu_t) / (1 - M_t) g + mu_{t+1} / (1 - M_t mu_{t+1}) m) / (sqrt(v̂) + eps)`` with ``M_t`` the
    product of the weights so far.
    """
    b1, lr = hyper["beta1"], hyper["lr"]
    p, g = _decay_parameter(p, g, hyper, maximize, decay, decoupled)
    mu, following = (b1 * (1 - 0.5 * 0.96 ** (t * hyper["momentum_decay"])) for t in (step, step + 1))
    m, v = _moments(g, state, hyper)
    product = (state["mu_product"] * mu).astype(state["mu_product"].dtype)
    now, ahead = lr * (1 - mu) / (1 - product), lr * following / (1 - product * following)
    root = jnp.sqrt(v / _number(1 - hyper["beta2"] ** step, p)) + hyper["eps"]
    step_by = (now.astype(g.dtype) * g + ahead.astype(g.dtype) * m) / root
    return p - step_by.astype(p.dtype), {"exp_avg": m, "exp_avg_sq": v, "mu_product": product}


@elementwise
def radam(
    p: Array, g: Array, state: State, step: Array, hyper: Hyper, *, maximize: bool, decay: bool, decoupled: bool
) -> Updated:
    """Adam whose step is scaled by how well v is known: ``rho_t = rho_inf - 2 t b2^t / (1 - b2^t)``.

    While ``rho_t <= 5`` the step is ``lr m̂``; then ``lr m̂ r_t / sqrt(v̂)``, r_t the rectification of the variance.
    """
    b1, b2 = hyper["beta1"], hyper["beta2"]
    p, g = _decay_parameter(p, g, hyper, maximize, decay, decoupled)
    m, v = _moments(g, state, hyper)
    most = 2 / (1 - b2) - 1
    known = 1 - b2**step
    rho = most - 2 * step * b2**step / known
    late = rho > 5
    safe = jnp.where(late, rho, 6.0)
    rectified = jnp.sqrt((safe - 4) * (safe - 2) * most / ((most - 4) * (most - 2) * safe)) * jnp.sqrt(known)
    u = m * jnp.where(late, _number(rectified, p) / (jnp.sqrt(v) + hyper["eps"]), 1)
    return descend(p, u, _number(hyper["lr"] / (1 - b1**step), p)), {"exp_avg": m, "exp_avg_sq": v}


def _moments(g: Array, state: State, hyper: Hyper) -> tuple[Array, Array]:
    """Return the new running means of the gradient and of its square."""
    b1, b2, m = hyper["beta1"], hyper["beta2"], state["exp_avg"]
    return m + (1 - b1) * (g - m), b2 * state["exp_avg_sq"] + (1 - b2) * g * g


def _decay_parameter(
    p: Array, g: Array, hyper: Hyper, maximize: bool, decay: bool, decoupled: bool
) -> tuple[Array, Array]:
    """Return the parameter, decayed if that is decoupled, and the gradient to follow down."""
    g = decay_gradient(p, g, hyper, maximize, decay and not decoupled)
    return p * _number(1 - hyper["lr"] * hyper["weight_decay"], p) if decay and decoupled else p, g


def _number(value: Any, p: Array) -> Any:
    """Return a float64 number in the parameter's dtype."""
    return jnp.asarray(value).astype(p.dtype)


class Adamax(MomentOptimizer):
    """Adam with the largest gradient instead of the mean square: ``u = max(b2 u, |g| + eps)``.

    Args:
        betas: decay rates of the mean and of the largest gradient.
        eps: added to the size of a gradient.

    Source: Kingma and Ba, Adam: A Method for Stochastic Optimization (2015), section 7.
    """

    _state_names = ("exp_avg", "exp_inf")
    _rule = staticmethod(adamax)

    def __init__(
        self,
        params: Iterable,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        *,
        maximize: bool = False,
        **implementation: Unpack[Implementation],
    ):
        options = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}
        super().__init__(params, options, implementation)


class NAdam(MomentOptimizer):
    """Adam with Nesterov's momentum.

    Args:
        momentum_decay: how fast the weight of momentum rises.

    Source: Dozat, Incorporating Nesterov Momentum into Adam (2016).
    """

    hyper = (*MomentOptimizer.hyper, "momentum_decay")
    _dynamic = (*MomentOptimizer._dynamic, "momentum_decay")
    _not_negative = (*MomentOptimizer._not_negative, "momentum_decay")
    _state_names = ("exp_avg", "exp_avg_sq", "mu_product")
    _rule = staticmethod(nadam)

    def __init__(
        self,
        params: Iterable,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        maximize: bool = False,
        **implementation: Unpack[Implementation],
    ):
        options = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}
        options |= {"momentum_decay": momentum_decay, "decoupled_weight_decay": decoupled_weight_decay}
        super().__init__(params, options, implementation)

    def _numbers(self, group: dict[str, Any]) -> tuple[Any, ...]:
        return (*super()._numbers(group), group["momentum_decay"])

    def _shape(self, name: str, param: Any) -> tuple[int, ...] | None:
        return () if name == "mu_product" else None

    def _initial(self, name: str, group: dict[str, Any]) -> float:
        return 1.0 if name == "mu_product" else 0.0


class RAdam(MomentOptimizer):
    """Adam with a rectified variance: no warm-up needed.

    Source: Liu et al., On the Variance of the Adaptive Learning Rate and Beyond (2020).
    """

    _rule = staticmethod(radam)

    def __init__(
        self,
        params: Iterable,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        maximize: bool = False,
        **implementation: Unpack[Implementation],
    ):
        options = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}
        options["decoupled_weight_decay"] = decoupled_weight_decay
        super().__init__(params, options, implementation)
