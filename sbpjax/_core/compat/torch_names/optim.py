"""`torch.optim`: optimizers with PyTorch's rules (`sbpjax.optim` has OneFlow's), and options without effect."""

from __future__ import annotations

from typing import Any

from sbpjax.optim.algorithms import rmsprop, sgd
from sbpjax.optim.check import is_on, params_value


class SGD(sgd.SGD):
    """`sbpjax.optim.SGD` whose first gradient enters the moving sum undampened; see there for the options.

    Raises:
        ValueError: `nesterov` without momentum, or with dampening.
    """

    def _check(self, group: dict[str, Any]) -> None:
        super()._check(group)
        if group["nesterov"] and (not is_on(group["momentum"]) or is_on(group["dampening"])):
            seen = f"nesterov=True, momentum={group['momentum']}, dampening={group['dampening']}"
            rule = "Nesterov momentum requires a momentum and zero dampening"
            raise params_value(seen, rule, "torch.optim.SGD(params, lr=0.1, momentum=0.9, nesterov=True)")

    def _flags(self, group: dict[str, Any]) -> tuple[tuple[str, bool], ...]:
        return (*super()._flags(group), ("whole_first", True))


class RMSprop(rmsprop.RMSprop):
    """`sbpjax.optim.RMSprop` that adds `eps` to the root, ``g / (sqrt(v) + eps)``; see there for the options."""

    def _flags(self, group: dict[str, Any]) -> tuple[tuple[str, bool], ...]:
        return (*super()._flags(group), ("eps_outside", True))
