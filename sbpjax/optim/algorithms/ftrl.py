"""`Ftrl` optimizer: follow the regularized leader, with L1 sparsity for linear models."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import jax.numpy as jnp

from sbpjax.optim.check import is_on
from sbpjax.optim.optimizer import Optimizer
from sbpjax.optim.rules import Array, Hyper, State, Updated, decay_gradient, elementwise


@elementwise
def ftrl(p: Array, g: Array, state: State, step: Array, hyper: Hyper, *, decay: bool) -> Updated:
    """``n' = n + g²``, ``z += g - (n'^k - n^k) / lr * p``; p follows from z, zero where ``|z| <= lambda1``."""
    lr, power, lambda1, n = hyper["lr"], hyper["lr_power"], hyper["lambda1"], state["accumulate"]
    g = decay_gradient(p, g, hyper, False, decay)
    after = n + g * g
    root = after**power
    z = state["z"] + g - (root - n**power) / lr * p
    bound = (hyper["beta"] + root) / lr + hyper["lambda2"]
    new = jnp.where(jnp.abs(z) <= lambda1, 0, (jnp.sign(z) * lambda1 - z) / bound)
    return new.astype(p.dtype), {"accumulate": after, "z": z}


class Ftrl(Optimizer):
    """FTRL-proximal: ``p = (sign(z) lambda1 - z) / ((beta + n^lr_power) / lr + lambda2)``, 0 where ``|z| <= lambda1``.

    The power has OneFlow's sign: with its default of -0.5 the steps grow with n, the sum of squared gradients. The
    paper's rule, and TensorFlow's at its ``learning_rate_power=-0.5``, is ``lr_power=0.5`` here. A row of a table that
    had no gradient yet is zero after the first step, and with sparse updates it keeps its initial value.

    Args:
        lr_power: the power k of the sum of squared gradients n.
        initial_accumulator_value: initial value of that sum.
        lambda1: strength of the L1 term, which makes zeros.
        lambda2: strength of the L2 term.
        beta: added to the power of the sum.

    Source: McMahan et al., Ad Click Prediction: a View from the Trenches (2013).
    """

    hyper = ("lr", "weight_decay", "lr_power", "lambda1", "lambda2", "beta")
    _dynamic = hyper
    _not_negative = ("lr", "weight_decay", "initial_accumulator_value", "lambda1", "lambda2", "beta")
    _state_names = ("accumulate", "z")
    _rule = staticmethod(ftrl)
    support_sparse = True

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

    def _initial(self, name: str, group: dict[str, Any]) -> float:
        return group["initial_accumulator_value"] if name == "accumulate" else 0.0

    def _flags(self, group: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
        return (("decay", is_on(group["weight_decay"])),)
