"""`Ftrl`: follow the regularized leader, which keeps most weights of a sparse linear model at zero."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp

from sbpjax.optim.check import at_least_zero, is_on
from sbpjax.optim.optimizer import Optimizer
from sbpjax.optim.rules import Arrays, States, decayed


def ftrl(
    params: Arrays, grads: Arrays, states: States, step: jax.Array, hyper: dict[str, Any], *, decay: bool
) -> tuple[Arrays, States]:
    """``n' = n + g²``, ``z += g - (n'^k - n^k) / lr * p``; p is what z asks for, zero where ``|z| <= lambda1``."""
    grads = decayed(params, grads, hyper, False, decay)
    lr, power, lambda1 = hyper["lr"], hyper["lr_power"], hyper["lambda1"]
    moved, sums, leaders = [], [], []
    for p, g, n, z in zip(params, grads, states["accumulate"], states["z"]):
        after = n + g * g
        root = after**power
        z = z + g - (root - n**power) / lr * p
        bound = (hyper["beta"] + root) / lr + hyper["lambda2"]
        new = jnp.where(jnp.abs(z) <= lambda1, 0, (jnp.sign(z) * lambda1 - z) / bound)
        moved.append(new.astype(p.dtype))
        sums.append(after)
        leaders.append(z)
    return moved, {"accumulate": sums, "z": leaders}


class Ftrl(Optimizer):
    """FTRL-proximal: ``p = (sign(z) lambda1 - z) / ((beta + n^lr_power) / lr + lambda2)``, 0 where ``|z| <= lambda1``.

    The power has OneFlow's sign: with its default of -0.5 the steps grow with n, the sum of squared gradients. The
    paper's rule, and TensorFlow's at its ``learning_rate_power=-0.5``, is ``lr_power=0.5`` here.

    Args:
        params: the parameters, or dicts with ``"params"`` and options of their own.
        lr: step size.
        weight_decay: L2 decay, added to the gradient.
        lr_power: the power k of the sum of squared gradients n.
        initial_accumulator_value: what that sum starts from.
        lambda1: strength of the L1 term, which makes zeros.
        lambda2: strength of the L2 term.
        beta: added to the power of the sum.

    Source: McMahan et al., Ad Click Prediction: a View from the Trenches (2013).
    """

    hyper = ("lr", "weight_decay", "lr_power", "lambda1", "lambda2", "beta")
    _dynamic = hyper
    _rule = staticmethod(ftrl)

    def __init__(
        self,
        params: Iterable,
        lr: float = 1e-3,
        weight_decay: float = 0.0,
        lr_power: float = -0.5,
        initial_accumulator_value: float = 0.1,
        lambda1: float = 0.0,
        lambda2: float = 0.0,
        beta: float = 0.0,
    ):
        options = {"lr": lr, "weight_decay": weight_decay, "lr_power": lr_power, "lambda1": lambda1}
        options |= {"initial_accumulator_value": initial_accumulator_value, "lambda2": lambda2, "beta": beta}
        super().__init__(params, options)

    def _check(self, group: dict[str, Any]) -> None:
        for name in ("lr", "weight_decay", "initial_accumulator_value", "lambda1", "lambda2", "beta"):
            at_least_zero(name, group[name])

    def _states(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("accumulate", "z")

    def _initial(self, name: str, group: dict[str, Any]) -> float:
        return group["initial_accumulator_value"] if name == "accumulate" else 0.0

    def _flags(self, group: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
        return (("decay", is_on(group["weight_decay"])),)
