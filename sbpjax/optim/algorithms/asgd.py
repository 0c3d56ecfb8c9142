"""`ASGD` optimizer: SGD with a decaying rate and a running average of the parameters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Unpack

import jax.numpy as jnp

from sbpjax.optim.optimizer import Optimizer
from sbpjax.optim.options import Implementation
from sbpjax.optim.rules import Array, Hyper, State, Updated, decay_gradient


def asgd(p: Array, g: Array, state: State, step: Array, hyper: Hyper, *, maximize: bool, decay: bool) -> Updated:
    """``p = (1 - lambd eta) p - eta g``, ``ax += mu (p - ax)``; then ``eta`` and ``mu`` for the next step."""
    lr, lambd = hyper["lr"], hyper["lambd"]
    eta, mu, average = state["eta"], state["mu"], state["ax"]
    g = decay_gradient(p, g, hyper, maximize, decay)
    p = p * (1 - lambd * eta).astype(p.dtype) - eta.astype(p.dtype) * g
    average = jnp.where(mu == 1, p, average + (p - average) * mu.astype(p.dtype))
    later = lr / (1 + lambd * lr * step) ** hyper["alpha"], 1 / jnp.maximum(step - hyper["t0"], 1)
    return p, {"eta": later[0].astype(eta.dtype), "mu": later[1].astype(mu.dtype), "ax": average}


class ASGD(Optimizer):
    """Averaged stochastic gradient descent; the average of a parameter is ``optimizer.state[p]["ax"]``.

    Args:
        lr: step size at first.
        lambd: decay of the weights, and how fast the step size falls.
        alpha: the power of its fall.
        t0: after how many steps averaging begins.

    Source: Polyak and Juditsky, Acceleration of Stochastic Approximation by Averaging (1992).
    """

    hyper = ("lr", "lambd", "alpha", "t0", "weight_decay")
    _dynamic = hyper
    _not_negative = ("lr", "weight_decay")
    _state_names = ("eta", "mu", "ax")
    _rule = staticmethod(asgd)

    def __init__(
        self,
        params: Iterable,
        lr: float = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        *,
        maximize: bool = False,
        **implementation: Unpack[Implementation],
    ):
        options = {"lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay}
        super().__init__(params, options | {"maximize": maximize}, implementation)

    def _shape(self, name: str, param: Any) -> tuple[int, ...] | None:
        return None if name == "ax" else ()

    def _initial(self, name: str, group: dict[str, Any]) -> float:
        return {"eta": float(group["lr"]), "mu": 1.0, "ax": 0.0}[name]
