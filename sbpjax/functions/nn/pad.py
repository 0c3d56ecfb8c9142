"""Padding of tensors."""

from __future__ import annotations

from collections.abc import Sequence

from sbpjax.ops import arrange
from sbpjax.tensor import Tensor
from sbpjax.tensor.dispatch import apply
from sbpjax.tensor.oneflow_arguments import take_oneflow


def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """Return x with cells added before and behind its last dims.

    Args:
        input: any shape.
        pad: ``(before, behind)`` of the last dim, then of the one before it, and so on; negative ones cut.
        mode: ``"constant"``, ``"reflect"``, ``"replicate"`` or ``"circular"``.
        value: the constant; None is zero.
    """
    return apply(arrange.pad, (input,), (("pad", tuple(int(n) for n in pad)), ("mode", mode), ("value", value)))


take_oneflow(globals(), "nn.functional.")
