"""`Adam` and `AdamW`: steps scaled by running moments of the gradient.

`tests/optim/test_optimizer.py` holds them against PyTorch.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from sbpjax.optim import rules
from sbpjax.optim.check import at_least_zero, betas_in_range, is_on
from sbpjax.optim.optimizer import Optimizer


class Adam(Optimizer):
    """Adam: ``p = p - lr * m̂ / (sqrt(v̂) + eps)`` with running means m of the gradient and v of its square.

    Args:
        params: the parameters, or dicts with ``"params"`` and options of their own.
        lr: step size.
        betas: decay rates of the two running means.
        eps: added to the denominator.
        weight_decay: L2 decay, added to the gradient.
        amsgrad: divide by the largest v so far.
        do_bias_correction: divide the running means by their weights so far.
        fused: accepted for compatibility; the update is always one program.
        maximize: climb instead.

    Example:
        >>> optimizer = optim.Adam(model.parameters(), lr=1e-3)

    Source: Kingma and Ba, Adam: A Method for Stochastic Optimization (2015); Reddi et al. (2018) for AMSGrad.
    """

    hyper = ("lr", "beta1", "beta2", "eps", "weight_decay")
    _dynamic = ("lr", "betas", "eps", "weight_decay")
    _rule = staticmethod(rules.adam)
    _decoupled: ClassVar[bool] = False
    support_sparse = True

    def __init__(
        self,
        params: Iterable,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        do_bias_correction: bool = True,
        fused: bool = False,
        *,
        maximize: bool = False,
    ):
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "amsgrad": amsgrad,
                "do_bias_correction": do_bias_correction,
                "maximize": maximize,
            },
        )

    def _check(self, group: dict[str, Any]) -> None:
        for name in ("lr", "eps", "weight_decay"):
            at_least_zero(name, group[name])
        betas_in_range(group["betas"])

    def _numbers(self, group: dict[str, Any]) -> tuple[Any, ...]:
        return (group["lr"], *group["betas"], group["eps"], group["weight_decay"])

    def _states(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("exp_avg", "exp_avg_sq", "max_exp_avg_sq") if group["amsgrad"] else ("exp_avg", "exp_avg_sq")

    def _flags(self, group: dict[str, Any]) -> tuple[tuple[str, bool], ...]:
        return (
            ("maximize", bool(group["maximize"])),
            ("decay", is_on(group["weight_decay"])),
            ("decoupled", self._decoupled),
            ("amsgrad", bool(group["amsgrad"])),
            ("correct", bool(group["do_bias_correction"])),
        )


class AdamW(Adam):
    """Adam with decoupled weight decay: ``p = p - lr * (m̂ / (sqrt(v̂) + eps) + weight_decay * p)``.

    Args:
        params: the parameters, or dicts with ``"params"`` and options of their own.
        lr: step size.
        betas: decay rates of the two running means.
        eps: added to the denominator.
        weight_decay: decay of the weights themselves, times `lr`.
        amsgrad: divide by the largest v so far.
        do_bias_correction: divide the running means by their weights so far.
        fused: accepted for compatibility; the update is always one program.
        maximize: climb instead.

    Source: Loshchilov and Hutter, Decoupled Weight Decay Regularization (2019).
    """

    _decoupled = True

    def __init__(
        self,
        params: Iterable,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        do_bias_correction: bool = True,
        fused: bool = False,
        *,
        maximize: bool = False,
    ):
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, do_bias_correction, fused, maximize=maximize)
