"""`SGD` optimizer: stochastic gradient descent with momentum, dampening, Nesterov and L2 decay.

As in OneFlow 0.9, and unlike PyTorch, dampening takes part in the first step too, and Nesterov's momentum may be set
without momentum, or with dampening. Under the name torch, `torch.optim.SGD` is PyTorch's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Unpack

from sbpjax.optim import rules
from sbpjax.optim.check import is_on
from sbpjax.optim.optimizer import Optimizer
from sbpjax.optim.options import Choices, Implementation


class SGD(Optimizer):
    """Descend along the gradient, or along a moving sum of gradients.

    ``g = grad + weight_decay * p``, ``b = momentum * b + (1 - dampening) * g``, ``p = p - lr * b``.

    Args:
        momentum: decay rate of the moving sum; 0 keeps none.
        dampening: the share of a new gradient left out of the sum, from the first step on.
        weight_decay: L2 decay.
        nesterov: look ahead: descend along ``g + momentum * b``; without momentum it has no effect.

    Example:
        >>> optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    """

    hyper = ("lr", "momentum", "dampening", "weight_decay")
    _dynamic = hyper
    _not_negative = ("lr", "momentum", "weight_decay")
    _rule = staticmethod(rules.sgd)
    _counts_steps = False
    support_sparse = True

    def __init__(
        self,
        params: Iterable,
        lr: float = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        maximize: bool = False,
        fused: bool | None = None,
        **implementation: Unpack[Choices],
    ):
        options = {"lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay}
        options |= {"nesterov": nesterov, "maximize": maximize}
        super().__init__(params, options, Implementation(fused=fused, **implementation))

    def _states(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("momentum_buffer",) if is_on(group["momentum"]) else ()

    def _flags(self, group: dict[str, Any]) -> tuple[tuple[str, bool], ...]:
        own = [(name, is_on(group[name])) for name in ("momentum", "dampening")]
        return (*super()._flags(group), *own, ("nesterov", bool(group["nesterov"])))

    def _leaves_rows(self, group: dict[str, Any]) -> bool:
        return not is_on(group["momentum"]) and not is_on(group["weight_decay"])
