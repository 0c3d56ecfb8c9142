"""`Adamax`, `NAdam` and `RAdam`: three variants of Adam."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Unpack

import jax
import jax.numpy as jnp

from sbpjax.optim.adam import OfMoments
from sbpjax.optim.check import at_least_zero
from sbpjax.optim.options import Implementation
from sbpjax.optim.rules import Arrays, States, decayed, descend


def adamax(
    params: Arrays,
    grads: Arrays,
    states: States,
    step: jax.Array,
    hyper: dict[str, Any],
    *,
    maximize: bool,
    decay: bool,
    decoupled: bool,
) -> tuple[Arrays, States]:
    """``m = b1 m + (1 - b1) g``, ``u = max(b2 u, |g| + eps)``, ``p -= lr / (1 - b1^t) * m / u``."""
    b1, b2 = hyper["beta1"], hyper["beta2"]
    grads = decayed(params, grads, hyper, maximize, decay)
    means = [m + (1 - b1) * (g - m) for g, m in zip(grads, states["exp_avg"])]
    largest = [jnp.maximum(b2 * u, jnp.abs(g) + hyper["eps"]) for g, u in zip(grads, states["exp_inf"])]
    rate = hyper["lr"] / (1 - b1**step)
    params = descend(params, [m / u for m, u in zip(means, largest)], _number(rate, params))
    return params, {"exp_avg": means, "exp_inf": largest}


def nadam(
    params: Arrays,
    grads: Arrays,
    states: States,
    step: jax.Array,
    hyper: dict[str, Any],
    *,
    maximize: bool,
    decay: bool,
    decoupled: bool,
) -> tuple[Arrays, States]:
    """Adam with Nesterov's momentum, whose weight ``mu_t = b1 (1 - 0.96^(t * momentum_decay) / 2)`` rises.

    ``p -= lr ((1 - mu_t) / (1 - M_t) g + mu_{t+1} / (1 - M_t mu_{t+1}) m) / (sqrt(v̂) + eps)`` with ``M_t`` the
    product of the weights so far.
    """
    b1, b2, lr = hyper["beta1"], hyper["beta2"], hyper["lr"]
    params, grads = _decayed(params, grads, hyper, maximize, decay, decoupled)
    mu, following = (b1 * (1 - 0.5 * 0.96 ** (t * hyper["momentum_decay"])) for t in (step, step + 1))
    means = [m + (1 - b1) * (g - m) for g, m in zip(grads, states["exp_avg"])]
    squares = [b2 * v + (1 - b2) * g * g for g, v in zip(grads, states["exp_avg_sq"])]
    products = [(product * mu).astype(product.dtype) for product in states["mu_product"]]
    correct = _number(1 - b2**step, params)
    moved = []
    for p, g, m, v, product in zip(params, grads, means, squares, products):
        now, ahead = lr * (1 - mu) / (1 - product), lr * following / (1 - product * following)
        step_by = (now.astype(g.dtype) * g + ahead.astype(g.dtype) * m) / (jnp.sqrt(v / correct) + hyper["eps"])
        moved.append(p - step_by.astype(p.dtype))
    return moved, {"exp_avg": means, "exp_avg_sq": squares, "mu_product": products}


def radam(
    params: Arrays,
    grads: Arrays,
    states: States,
    step: jax.Array,
    hyper: dict[str, Any],
    *,
    maximize: bool,
    decay: bool,
    decoupled: bool,
) -> tuple[Arrays, States]:
    """Adam whose step is scaled by how well v is known: ``rho_t = rho_inf - 2 t b2^t / (1 - b2^t)``.

    While ``rho_t <= 5`` the step is ``lr m̂``; then ``lr m̂ r_t / sqrt(v̂)``, r_t the rectification of the variance.
    """
    b1, b2 = hyper["beta1"], hyper["beta2"]
    params, grads = _decayed(params, grads, hyper, maximize, decay, decoupled)
    means = [m + (1 - b1) * (g - m) for g, m in zip(grads, states["exp_avg"])]
    squares = [b2 * v + (1 - b2) * g * g for g, v in zip(grads, states["exp_avg_sq"])]
    most = 2 / (1 - b2) - 1
    known = 1 - b2**step
    rho = most - 2 * step * b2**step / known
    late = rho > 5
    safe = jnp.where(late, rho, 6.0)
    rectified = jnp.sqrt((safe - 4) * (safe - 2) * most / ((most - 4) * (most - 2) * safe)) * jnp.sqrt(known)
    scale = _number(rectified, params)
    rate = _number(hyper["lr"] / (1 - b1**step), params)
    updates = [m * jnp.where(late, scale / (jnp.sqrt(v) + hyper["eps"]), 1) for m, v in zip(means, squares)]
    return descend(params, updates, rate), {"exp_avg": means, "exp_avg_sq": squares}


def _decayed(
    params: Arrays, grads: Arrays, hyper: dict[str, Any], maximize: bool, decay: bool, decoupled: bool
) -> tuple[Arrays, Arrays]:
    """Return the parameters, decayed if that is decoupled, and the gradients to follow down."""
    grads = decayed(params, grads, hyper, maximize, decay and not decoupled)
    if decay and decoupled:
        params = [p * _number(1 - hyper["lr"] * hyper["weight_decay"], params) for p in params]
    return params, grads


def _number(value: Any, params: Arrays) -> Any:
    """Return a float64 number in the parameters' dtype."""
    return jnp.asarray(value).astype(params[0].dtype)


class Adamax(OfMoments):
    """Adam by the largest gradient instead of the mean square: ``u = max(b2 u, |g| + eps)``.

    Args:
        params: the parameters, or dicts with ``"params"`` and options of their own.
        lr: step size.
        betas: decay rates of the mean and of the largest gradient.
        eps: added to the size of a gradient.
        weight_decay: L2 decay, added to the gradient.
        maximize: climb instead.
        implementation: PyTorch's `foreach`, `fused` and `capturable`, without effect.

    Source: Kingma and Ba, Adam: A Method for Stochastic Optimization (2015), section 7.
    """

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

    def _states(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("exp_avg", "exp_inf")


class NAdam(OfMoments):
    """Adam with Nesterov's momentum.

    Args:
        params: the parameters, or dicts with ``"params"`` and options of their own.
        lr: step size.
        betas: decay rates of the two running means.
        eps: added to the denominator.
        weight_decay: L2 decay, added to the gradient.
        momentum_decay: how fast the weight of momentum rises.
        decoupled_weight_decay: decay the weights themselves.
        maximize: climb instead.
        implementation: PyTorch's `foreach`, `fused` and `capturable`, without effect.

    Source: Dozat, Incorporating Nesterov Momentum into Adam (2016).
    """

    hyper = (*OfMoments.hyper, "momentum_decay")
    _dynamic = (*OfMoments._dynamic, "momentum_decay")
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

    def _check(self, group: dict[str, Any]) -> None:
        super()._check(group)
        at_least_zero("momentum_decay", group["momentum_decay"])

    def _numbers(self, group: dict[str, Any]) -> tuple[Any, ...]:
        return (*super()._numbers(group), group["momentum_decay"])

    def _states(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("exp_avg", "exp_avg_sq", "mu_product")

    def _shape(self, name: str, param: Any) -> tuple[int, ...] | None:
        return () if name == "mu_product" else None

    def _initial(self, name: str, group: dict[str, Any]) -> float:
        return 1.0 if name == "mu_product" else 0.0


class RAdam(OfMoments):
    """Adam with a rectified variance: no warm-up needed.

    Args:
        params: the parameters, or dicts with ``"params"`` and options of their own.
        lr: step size.
        betas: decay rates of the two running means.
        eps: added to the denominator.
        weight_decay: L2 decay, added to the gradient.
        decoupled_weight_decay: decay the weights themselves.
        maximize: climb instead.
        implementation: PyTorch's `foreach`, `fused` and `capturable`, without effect.

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
