"""Losses with a number or a function as argument; the others are in `rows/layers.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sbpjax._core.functions.table.checks import check_elements
from sbpjax._core.functions.table.table import find_function
from sbpjax._core.ops.dims import fail
from sbpjax._core.ops.losses import loss as loss_ops
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.dispatch.dispatch import apply


def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Any, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    """Return the negative log likelihood under normal distributions with the given variances, reduced.

    Args:
        input: expectations.
        target: samples.
        var: variances: a number, or a tensor of the input's shape, or with a last dim of 1 or none.
        full: add the constant term.
        eps: the smallest variance.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
    """
    if not isinstance(var, Tensor):
        if var < 0:
            fail("value", "gaussian_nll_loss(...)", f"var={var}", "var has negative entry/entries", "var=1.0")
        var = input.detach() * 0 + float(var)
    rule = "var has negative entry/entries"
    check_elements("gaussian_nll_loss(input, target, var)", var, lambda part: not (part < 0).any(), rule, "var.abs()")
    return apply(loss_ops.gaussian_nll_loss, input, target, var, full=full, eps=float(eps), reduction=reduction)


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """Return max(0, d(anchor, positive) - d(anchor, negative) + margin) of any distance, reduced.

    Args:
        anchor: `(N, D)`.
        positive: like the anchor.
        negative: like the anchor.
        distance_function: of two tensors; None is the Euclidean distance.
        margin: the wanted difference of distances.
        swap: take the smaller of the negative's distances to anchor and positive.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
    """
    if not anchor.ndim == positive.ndim == negative.ndim:
        seen = f"{tuple(anchor.shape)}, {tuple(positive.shape)}, {tuple(negative.shape)}"
        rule = "anchor, positive and negative have as many dims each"
        fail("shape", "triplet_margin_with_distance_loss(...)", seen, rule, "x.unsqueeze(0)")
    if margin <= 0:
        rule = f"expected margin to be greater than 0, got {margin} instead"
        fail("value", "triplet_margin_with_distance_loss(...)", f"margin={margin}", rule, "margin=1.0")
    if distance_function is None:
        distance_function = find_function("nn.functional", "pairwise_distance")
    near, far = distance_function(anchor, positive), distance_function(anchor, negative)
    if swap:
        far = far.minimum(distance_function(positive, negative))
    return apply(_margin_loss, near, far, margin=float(margin), reduction=reduction)


def _margin_loss(near: Any, far: Any, /, margin: float, reduction: str) -> Any:
    return loss_ops._reduce_loss(loss_ops.clamp_min(near - far + margin, 0.0), reduction)
