"""Linear algebra beyond products: norms."""

from __future__ import annotations

from sbpjax.tensor.binding import hashable
from sbpjax.tensor.functions import matmul as matmul
from sbpjax.tensor.reductions import norm as _norm
from sbpjax.tensor.tensor import Tensor


def norm(input: Tensor, ord=None, dim=None, keepdim: bool = False, *, dtype=None) -> Tensor:
    """Return a vector norm of all elements, or of some dims.

    Args:
        input: the tensor.
        ord: the order; None is the 2-norm.
        dim: the dims to reduce; all by default.
        keepdim: keep them with size 1.
        dtype: compute in this dtype.
    """
    return _norm(input, 2.0 if ord is None else ord, hashable(dim), keepdim, dtype)


def vector_norm(input: Tensor, ord=2, dim=None, keepdim: bool = False, *, dtype=None) -> Tensor:
    """Return the norm of the elements as one vector, or along dims."""
    return _norm(input, ord, hashable(dim), keepdim, dtype)
