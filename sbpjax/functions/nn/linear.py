"""Linear maps of tensors."""

from __future__ import annotations

from sbpjax.ops import linalg
from sbpjax.tensor import Tensor
from sbpjax.tensor.dispatch import run
from sbpjax.tensor.op import op_of

_LINEAR = op_of(linalg.linear)
_BILINEAR = op_of(linalg.bilinear)


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return x Wᵀ + b.

    Args:
        input: `(..., in)`, any sbp.
        weight: `(out, in)`; ``split(0)`` splits the result, ``split(1)`` makes it a partial sum if x is split
            along its last dim too.
        bias: `(out,)`.
    """
    return run(_LINEAR, (input, weight, bias))


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return x1 A x2 + b.

    Args:
        input1: `(..., in1)`.
        input2: `(..., in2)`.
        weight: `(out, in1, in2)`.
        bias: `(out,)`.
    """
    return run(_BILINEAR, (input1, input2, weight, bias))
