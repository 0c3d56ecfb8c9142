"""Loss layers; each calls its function in `sbpjax.nn.functional` with fixed options."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from sbpjax._core.functions import nn as F
from sbpjax._core.functions.table.checks import resolve_reduction
from sbpjax._core.functions.table.public import add_oneflow_arguments
from sbpjax._core.functions.table.texts import FamilyDocstring
from sbpjax._core.ops.dims import fail
from sbpjax._core.tensor import Tensor
from sbpjax.nn.layers.linear import Linear
from sbpjax.nn.module import Module

Flag = bool | None

_REDUCTIONS = ("none", "mean", "sum")
# The part common to all losses.
_ARGUMENTS = {
    "reduction": '``"mean"``, ``"sum"``, or ``"none"`` for one value per element or example.',
    "size_average": "the old form of `reduction`.",
    "reduce": "the old form of `reduction`.",
}
_RETURNS = "A number, or one per element or example; the mean or sum of split elements is a partial sum."


class _Loss(Module):
    """Base of the losses; the docstring of each is completed by the part common to all."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__module__.startswith("sbpjax."):
            cls.__doc__ = FamilyDocstring(cls.__doc__, _ARGUMENTS, _RETURNS)  # type: ignore[assignment]

    def __init__(self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"):
        super().__init__()
        reduction = resolve_reduction(size_average, reduce, reduction)
        if reduction not in _REDUCTIONS:
            rule = f"{reduction} is not a valid value for reduction; it is one of {_REDUCTIONS}"
            fail("value", f"{type(self).__name__}(...)", f"reduction={reduction!r}", rule, "reduction='mean'")
        self.reduction = reduction


class _Weighted(_Loss):
    """Base of the losses with a `weight` buffer.

    Args:
        weight: a weight per class or element.
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ):
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


class MSELoss(_Loss):
    """(x - y)².

    Example:
        >>> x, target = flow.tensor([0.5, 3.0]), flow.tensor([0.0, 1.0])
        >>> flow.nn.MSELoss()(x, target)
        tensor(2.1250)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.mse_loss(input, target, reduction=self.reduction)


class L1Loss(_Loss):
    """|x - y|.

    Example:
        >>> x, target = flow.tensor([0.5, 3.0]), flow.tensor([0.0, 1.0])
        >>> flow.nn.L1Loss(reduction="sum")(x, target)
        tensor(2.5000)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.l1_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    """(x - y)² / (2 beta) where |x - y| < beta, else |x - y| - beta / 2.

    Args:
        beta: where the parabola becomes a line.

    Example:
        >>> x, target = flow.tensor([0.5, 3.0]), flow.tensor([0.0, 1.0])
        >>> flow.nn.SmoothL1Loss(reduction="none")(x, target)
        tensor([0.1250, 1.5000])
    """

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        beta: float = 1.0,
    ):
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """(x - y)² / 2 where |x - y| < delta, else delta (|x - y| - delta / 2).

    Args:
        delta: where the parabola becomes a line.
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0):
        super().__init__(reduction=reduction)
        if not isinstance(delta, (int, float)):
            rule = f"delta must be a float or int, got: {type(delta)}"
            fail("type", "HuberLoss(...)", f"delta={delta!r}", rule, "delta=1.0")
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class CrossEntropyLoss(_Weighted):
    """Cross entropy of logits `(N, C, ...)` against class numbers `(N, ...)` or class probabilities.

    Args:
        weight: `(C,)`, one weight per class.
        ignore_index: targets of this number count nothing.
        label_smoothing: the share of the target probability spread over all classes.

    Example:
        >>> x = flow.tensor([[2.0, 0.0], [0.0, 1.0]]).to_global(flow.placement("cpu", [0, 1]), flow.sbp.split(0))
        >>> loss = flow.nn.CrossEntropyLoss()(x, flow.tensor([0, 1]).to_global(x.placement, flow.sbp.split(0)))
        >>> round(loss.item(), 4), loss.sbp
        (0.2201, (sbpjax.sbp.partial_sum,))
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ):
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index, self.label_smoothing = ignore_index, label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(
            input,
            target,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


@dataclasses.dataclass(frozen=True)
class LinearCrossEntropyOptions:
    """PyTorch's chunk options of `LinearCrossEntropyLoss`; accepted without effect, the device chooses the chunks.

    Attributes:
        allow_retain_graph: keep the tensors that a second backward needs; they are always kept.
        batch_chunk_size: rows of a chunk.
        chunking_method: how the rows are chosen.
        acc_policy: where sums are wide; they are float32 at least.
        acc_dtype: their dtype.
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: Any = None


class LinearCrossEntropyLoss(_Weighted):
    """Cross entropy of a linear layer's outputs against class numbers or probabilities.

    The logits of class numbers without `out_features` are not in memory as a whole, see
    `nn.functional.linear_cross_entropy`.

    Args:
        in_features: D, the features of the input `(N, D)` or `(D,)`.
        num_classes: C.
        out_features: K, for losses `(N, *K)` of targets `(N, *K)`, or of probabilities `(N, C, *K)`.
        bias: whether the layer `linear` has a bias.
        device: where its parameters are made.
        dtype: their dtype.
        weight: `(C,)`, one weight per class.
        ignore_index: targets of this number count nothing; None is -100.
        label_smoothing: the share of the target probability spread over all classes.
        options: `LinearCrossEntropyOptions`, without effect.

    Example:
        >>> loss = flow.nn.LinearCrossEntropyLoss(4, 10)
        >>> loss(flow.randn(2, 4), flow.tensor([1, 9])).shape
        sbpjax.Size([])
    """

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: Any = None,
        dtype: Any = None,
        reduction: str = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: LinearCrossEntropyOptions | None = None,
    ):
        operation = f"{type(self).__name__}(...)"
        if weight is not None and tuple(weight.shape) != (num_classes,):
            rule = f"expected weight shape to be {(num_classes,)}, got {tuple(weight.shape)}"
            fail("value", operation, f"weight {tuple(weight.shape)}", rule, f"weight=sbpjax.ones({num_classes})")
        if not 0 <= label_smoothing <= 1:
            rule = f"expected label_smoothing to be in range [0, 1], got {label_smoothing}"
            fail("value", operation, f"label_smoothing={label_smoothing}", rule, "label_smoothing=0.1")
        super().__init__(weight, None, None, reduction)
        self.num_classes, self.out_features = num_classes, tuple(out_features)
        self.ignore_index, self.label_smoothing, self.options = ignore_index, label_smoothing, options
        self.linear = Linear(in_features, math.prod(self.out_features, start=num_classes), bias, device, dtype)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        weight, bias = self.linear.weight, self.linear.bias
        if self.out_features:
            shape = (self.num_classes, *self.out_features)
            weight, bias = weight.reshape(*shape, -1), None if bias is None else bias.reshape(shape)
        return F.linear_cross_entropy(
            input,
            weight,
            target,
            linear_bias=bias,
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
        )

    def extra_repr(self) -> str:
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, out_features={self.out_features}, "
            f"bias={self.linear.bias is not None}, reduction={self.reduction}, ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}"
        )


class NLLLoss(_Weighted):
    """Minus the log probability `(N, C, ...)` of class numbers `(N, ...)`.

    Args:
        weight: `(C,)`, one weight per class.
        ignore_index: targets of this number count nothing.

    Example:
        >>> flow.nn.NLLLoss()(flow.tensor([[0.25, 0.75]]).log(), flow.tensor([1]))
        tensor(0.2877)
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
    ):
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.nll_loss(input, target, weight=self.weight, ignore_index=self.ignore_index, reduction=self.reduction)


class BCELoss(_Weighted):
    """Binary cross entropy of probabilities.

    Args:
        weight: a weight per element, broadcast.

    Example:
        >>> flow.nn.BCELoss()(flow.tensor([0.9, 0.2]), flow.tensor([1.0, 0.0]))
        tensor(0.1643)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy(input, target, weight=self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_Loss):
    """Binary cross entropy of logits.

    Args:
        weight: a weight per element, broadcast.
        pos_weight: a weight of positive examples, broadcast.

    Example:
        >>> flow.nn.BCEWithLogitsLoss()(flow.tensor([2.0, -1.0]), flow.tensor([1.0, 0.0]))
        tensor(0.2201)
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ):
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(
            input, target, weight=self.weight, reduction=self.reduction, pos_weight=self.pos_weight
        )


class KLDivLoss(_Loss):
    """target * (log target - x), with x log probabilities.

    Args:
        reduction: ``"mean"``, ``"batchmean"``, ``"sum"`` or ``"none"``.
        log_target: whether targets are log probabilities too.

    Example:
        >>> x, target = flow.tensor([[0.5, 0.5]]).log(), flow.tensor([[0.25, 0.75]])
        >>> flow.nn.KLDivLoss(reduction="batchmean")(x, target)
        tensor(0.1308)
    """

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        log_target: bool = False,
    ):
        super().__init__(size_average, reduce, "sum" if reduction == "batchmean" else reduction)
        self.log_target = log_target
        if reduction == "batchmean":
            self.reduction = reduction

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class PoissonNLLLoss(_Loss):
    """The negative log likelihood of counts under a Poisson distribution, reduced."""

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        size_average: Flag = None,
        eps: float = 1e-8,
        reduce: Flag = None,
        reduction: str = "mean",
    ):
        super().__init__(size_average, reduce, reduction)
        self.log_input, self.full, self.eps = log_input, full, eps

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        options = {"log_input": self.log_input, "full": self.full, "eps": self.eps}
        return F.poisson_nll_loss(input, target, **options, reduction=self.reduction)


class GaussianNLLLoss(_Loss):
    """The negative log likelihood under normal distributions with the given variances, reduced."""

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean"):
        super().__init__(reduction=reduction)
        self.full, self.eps = full, eps

    def forward(self, input: Tensor, target: Tensor, var: Any) -> Tensor:
        return F.gaussian_nll_loss(input, target, var, full=self.full, eps=self.eps, reduction=self.reduction)


class CTCLoss(_Loss):
    """Minus the log probability of label sequences, over all alignments.

    Args:
        blank: the class of no label.
        reduction: ``"mean"`` (of the losses divided by their targets' lengths), ``"sum"`` or ``"none"``.
        zero_infinity: an impossible sequence costs 0, without a gradient, rather than infinity.
    """

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False):
        super().__init__(reduction=reduction)
        self.blank, self.zero_infinity = blank, zero_infinity

    def forward(self, log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any) -> Tensor:
        return F.ctc_loss(
            log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity
        )


class NLLLoss2d(NLLLoss):
    """The old name of `NLLLoss` for images."""


add_oneflow_arguments(globals(), "nn.")
