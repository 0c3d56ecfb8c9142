"""`Adam` and `AdamW` optimizers, and `MomentOptimizer`, the base of all optimizers with two moments."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Unpack

from sbpjax._core.tensor import Tensor
from sbpjax.optim import rules
from sbpjax.optim.check import betas_in_range, params_value
from sbpjax.optim.optimizer import Optimizer
from sbpjax.optim.options import Choices, Implementation


class MomentOptimizer(Optimizer):
    """Base of the optimizers with two decay rates: their numbers, checks and states."""

    hyper = ("lr", "beta1", "beta2", "eps", "weight_decay")
    _dynamic = ("lr", "betas", "eps", "weight_decay")
    _not_negative = ("lr", "eps", "weight_decay")
    _state_names = ("exp_avg", "exp_avg_sq")

    def _check(self, group: dict[str, Any]) -> None:
        super()._check(group)
        betas_in_range(group["betas"])

    def _numbers(self, group: dict[str, Any]) -> tuple[Any, ...]:
        return (group["lr"], *group["betas"], group["eps"], group["weight_decay"])

    def _flags(self, group: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
        return (*super()._flags(group), ("decoupled", bool(group.get("decoupled_weight_decay", False))))


class Adam(MomentOptimizer):
    """Adam: ``p = p - lr * m̂ / (sqrt(v̂) + eps)`` with running means m of the gradient and v of its square.

    Args:
        do_bias_correction: divide the running means by their weights so far.
        decoupled_weight_decay: decay the weights themselves, as `AdamW` does.

    Example:
        >>> optimizer = optim.Adam(model.parameters(), lr=1e-3)

    Source: Kingma and Ba, Adam: A Method for Stochastic Optimization (2015); Reddi et al. (2018) for AMSGrad.
    """

    _rule = staticmethod(rules.adam)
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
        fused: bool | None = None,
        *,
        maximize: bool = False,
        decoupled_weight_decay: bool = False,
        **implementation: Unpack[Choices],
    ):
        options = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad}
        options |= {"do_bias_correction": do_bias_correction, "maximize": maximize}
        options["decoupled_weight_decay"] = decoupled_weight_decay
        super().__init__(params, options, Implementation(fused=fused, **implementation))

    def _check(self, group: dict[str, Any]) -> None:
        super()._check(group)
        betas = group["betas"]
        for name, value in (("lr", group["lr"]), ("betas[0]", betas[0]), ("betas[1]", betas[1])):
            if isinstance(value, Tensor) and group.get("foreach") and not group.get("capturable"):
                rule = f"{name} as a Tensor is not supported for capturable=False and foreach=True"
                raise params_value(f"{name}=tensor(...), foreach=True", rule, "leave out foreach")
        if len({isinstance(beta, Tensor) for beta in betas}) > 1:
            raise params_value(f"betas={betas!r}", "betas must be either both floats or both Tensors", "(0.9, 0.999)")

    def _states(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("exp_avg", "exp_avg_sq", "max_exp_avg_sq") if group["amsgrad"] else ("exp_avg", "exp_avg_sq")

    def _flags(self, group: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
        own = ("amsgrad", bool(group["amsgrad"])), ("correct", bool(group["do_bias_correction"]))
        return (*super()._flags(group), *own)


class AdamW(Adam):
    """Adam with decoupled weight decay: ``p = p - lr * (m̂ / (sqrt(v̂) + eps) + weight_decay * p)``.

    Args:
        weight_decay: decay of the weights themselves, times `lr`.
        do_bias_correction: divide the running means by their weights so far.

    Source: Loshchilov and Hutter, Decoupled Weight Decay Regularization (2019).
    """

    def __init__(
        self,
        params: Iterable,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        do_bias_correction: bool = True,
        fused: bool | None = None,
        *,
        maximize: bool = False,
        **implementation: Unpack[Choices],
    ):
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            do_bias_correction,
            fused,
            maximize=maximize,
            decoupled_weight_decay=True,
            **implementation,
        )
