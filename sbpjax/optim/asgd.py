"""`ASGD`: gradient descent with a falling rate, and the average of the parameters on the side."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Unpack

import jax
import jax.numpy as jnp

from sbpjax.optim.check import at_least_zero, is_on
from sbpjax.optim.optimizer import Optimizer
from sbpjax.optim.options import Implementation
from sbpjax.optim.rules import Arrays, States, decayed


def asgd(
    params: Arrays,
    grads: Arrays,
    states: States,
    step: jax.Array,
    hyper: dict[str, Any],
    *,
    maximize: bool,
    decay: bool,
) -> tuple[Arrays, States]:
    """``p = (1 - lambd eta) p - eta g``, ``ax += mu (p - ax)``; then ``eta`` and ``mu`` for the next step."""
    lr, lambd = hyper["lr"], hyper["lambd"]
    grads = decayed(params, grads, hyper, maximize, decay)
    moved, averages = [], []
    for p, g, eta, mu, average in zip(params, grads, states["eta"], states["mu"], states["ax"]):
        p = p * (1 - lambd * eta).astype(p.dtype) - eta.astype(p.dtype) * g
        moved.append(p)
        averages.append(jnp.where(mu == 1, p, average + (p - average) * mu.astype(p.dtype)))
    eta = lr / (1 + lambd * lr * step) ** hyper["alpha"]
    mu = 1 / jnp.maximum(step - hyper["t0"], 1)
    etas, mus = [[x.astype(s.dtype) for s in states[n]] for n, x in (("eta", eta), ("mu", mu))]
    return moved, {"eta": etas, "mu": mus, "ax": averages}


class ASGD(Optimizer):
    """Averaged stochastic gradient descent; the average of a parameter is ``optimizer.state[p]["ax"]``.

    Args:
        params: the parameters, or dicts with ``"params"`` and options of their own.
        lr: step size at first.
        lambd: decay of the weights, and how fast the step size falls.
        alpha: the power of its fall.
        t0: after how many steps averaging begins.
        weight_decay: L2 decay, added to the gradient.
        maximize: climb instead.
        implementation: PyTorch's `foreach`, `fused` and `capturable`, without effect.

    Source: Polyak and Juditsky, Acceleration of Stochastic Approximation by Averaging (1992).
    """

    hyper = ("lr", "lambd", "alpha", "t0", "weight_decay")
    _dynamic = hyper
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

    def _check(self, group: dict[str, Any]) -> None:
        for name in ("lr", "weight_decay"):
            at_least_zero(name, group[name])

    def _states(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("eta", "mu", "ax")

    def _shape(self, name: str, param: Any) -> tuple[int, ...] | None:
        return None if name == "ax" else ()

    def _initial(self, name: str, group: dict[str, Any]) -> float:
        return {"eta": float(group["lr"]), "mu": 1.0, "ax": 0.0}[name]

    def _flags(self, group: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
        return ("maximize", bool(group["maximize"])), ("decay", is_on(group["weight_decay"]))
