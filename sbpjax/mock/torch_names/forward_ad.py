"""`torch.autograd.forward_ad`: dual numbers, by the tape.

    with dual_level():
        y = f(make_dual(x, t))
        unpack_dual(y).tangent          # the derivative of f at x in the direction t

The tangent is found when it is asked for, as the product of the Jacobian with the direction: the gradient, by its
cotangent, of a gradient. So gradients are recorded within the block, and a tensor made under `no_grad` has no tangent.
"""

from __future__ import annotations

import contextlib
from typing import NamedTuple

from sbpjax.tensor import Tensor
from sbpjax.tensor.tape.grad_mode import enable_grad
from sbpjax.tracing.derivatives import _pushed

_levels: list[list[tuple[Tensor, Tensor]]] = []


class UnpackedDualTensor(NamedTuple):
    """A value and its derivative.

    Attributes:
        primal: the value.
        tangent: the derivative; None where no dual number is behind the value.
    """

    primal: Tensor
    tangent: Tensor | None


@contextlib.contextmanager
def dual_level():
    """Within the block, tensors may be made dual."""
    if _levels:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    _levels.append([])
    try:
        with enable_grad():
            yield 0
    finally:
        _levels.pop()


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """Return a tensor with a derivative.

    Args:
        tensor: the value.
        tangent: the derivative, of the same shape and dtype.
        level: accepted; there is one.
    """
    if not _levels:
        raise RuntimeError("make_dual is called outside of a block of dual_level()")
    if tangent.shape != tensor.shape:
        raise RuntimeError(f"Expected tangent to have the shape {list(tensor.shape)}, not {list(tangent.shape)}")
    source = tensor.view_as(tensor) if tensor.requires_grad else tensor.detach().requires_grad_()
    _levels[-1].append((source, tangent))
    return source


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """Return the value and the derivative of a tensor.

    Args:
        tensor: what was computed from dual numbers.
        level: accepted; there is one.
    """
    duals = _levels[-1] if _levels else []
    for source, tangent in duals:
        if source is tensor:
            return UnpackedDualTensor(tensor, tangent)
    if not duals or not tensor.requires_grad:
        return UnpackedDualTensor(tensor, None)
    sources, tangents = zip(*duals, strict=True)
    found = _pushed("unpack_dual(x)", (tensor,), sources, tangents, False, True)
    return UnpackedDualTensor(tensor, found[0])
