"""Reductions with PyTorch's overloads: ``max``, ``min``, variances and norms."""

from __future__ import annotations

from collections import namedtuple
from operator import index as as_int

from sbpjax._core.ops import arithmetic
from sbpjax._core.ops.linalg.matrix_norm import matrix_norm
from sbpjax._core.ops.reductions import reduce
from sbpjax._core.tensor.calls.binding import into_out, must_be_tensor
from sbpjax._core.tensor.dispatch import dispatch
from sbpjax._core.tensor.dispatch.op import op_of
from sbpjax._core.tensor.handle import dtype as dtypes
from sbpjax._core.tensor.handle.tensor import Tensor
from sbpjax.errors import OpTypeError

max_result = namedtuple("max", ["values", "indices"])
min_result = namedtuple("min", ["values", "indices"])


def _extreme(fn, other_fn, result, input, dim, keepdim, other, out):
    if isinstance(input, (int, float)):
        must_be_tensor(fn.__name__, input)
    if isinstance(dim, Tensor):
        other, dim = dim, None
    if other is not None:
        found = dispatch.apply(getattr(arithmetic, other_fn), input, other)
        return found if out is None else into_out(out, found)
    if dim is None:
        if keepdim:
            rule = "keepdim comes with dim"
            raise OpTypeError(f"{fn.__name__}(keepdim=True)", "no dim", rule, f"a{fn.__name__}(keepdim=True)")
        found = dispatch.unary(op_of(fn), input)
        return found if out is None else into_out(out, found)
    values = result(*dispatch.apply(fn, input, dim=as_int(dim), keepdim=keepdim))
    return values if out is None else into_out(out, tuple(values))


def max(input: Tensor, dim=None, keepdim: bool = False, *, other=None, out=None):
    """Return the largest element; along ``dim`` with the indices; with another tensor the elementwise maximum.

    Args:
        dim: the dim, or None for all elements; or the other tensor.
        other: a tensor to compare with, element by element.

    Returns:
        A number; or with ``dim`` a named tuple of values and int64 indices. Splits of other dims stay. A split of the
        dim itself is moved or reduced, whichever is cheaper; a partial sum is reduced first.

    Raises:
        OpTypeError: ``keepdim`` without ``dim``.
        OpIndexError: there is no such dim.

    Example:
        >>> x = flow.tensor([[1.0, 5.0], [7.0, 3.0]])
        >>> flow.max(x)
        tensor(7.)
        >>> flow.max(x, dim=1).indices
        tensor([1, 0])
    """
    return _extreme(reduce.max, "maximum", max_result, input, dim, keepdim, other, out)


def min(input: Tensor, dim=None, keepdim: bool = False, *, other=None, out=None):
    """Return the smallest element; along ``dim`` with the indices; with another tensor the elementwise minimum.

    Args:
        dim: the dim, or None for all elements; or the other tensor.
        other: a tensor to compare with, element by element.

    Returns:
        A number; or with ``dim`` a named tuple of values and int64 indices. Splits of other dims stay. A split of the
        dim itself is moved or reduced, whichever is cheaper; a partial sum is reduced first.

    Raises:
        OpTypeError: ``keepdim`` without ``dim``.
        OpIndexError: there is no such dim.

    Example:
        >>> x = flow.tensor([[1.0, 5.0], [7.0, 3.0]])
        >>> flow.min(x)
        tensor(1.)
        >>> flow.min(x, dim=1).indices
        tensor([0, 1])
    """
    return _extreme(reduce.min, "minimum", min_result, input, dim, keepdim, other, out)


def _apply_variance(fn, input, dim, unbiased, correction, keepdim):
    if isinstance(dim, bool):  # var(x, unbiased)
        dim, unbiased = None, dim
    if unbiased is not None:
        correction = int(unbiased)
    correction = 1 if correction is None else correction
    return dispatch.apply(fn, input, dim=dim, correction=correction, keepdim=keepdim)


def var(input: Tensor, dim=None, unbiased: bool | None = None, keepdim: bool = False, *, correction=1) -> Tensor:
    """Return the variance, over ``n - correction``.

    Args:
        dim: a dim, several, or None for all.
        unbiased: the older form of ``correction``: 1 if true, 0 if not.
        correction: subtracted from the number of elements.

    Returns:
        Splits of other dims stay; a partial sum is reduced first.

    Raises:
        OpTypeError: ``input`` is not floating point.

    Example:
        >>> x = flow.tensor([[1.0, 5.0], [7.0, 3.0]])
        >>> flow.var(x, dim=1)
        tensor([8., 8.])
    """
    return _apply_variance(reduce.var, input, dim, unbiased, correction, keepdim)


def std(input: Tensor, dim=None, unbiased: bool | None = None, keepdim: bool = False, *, correction=1) -> Tensor:
    """Return the standard deviation, over ``n - correction``.

    Args:
        dim: a dim, several, or None for all.
        unbiased: the older form of ``correction``: 1 if true, 0 if not.
        correction: subtracted from the number of elements.

    Returns:
        Splits of other dims stay; a partial sum is reduced first.

    Raises:
        OpTypeError: ``input`` is not floating point.

    Example:
        >>> x = flow.tensor([[1.0, 5.0], [7.0, 3.0]])
        >>> flow.std(x, dim=1)
        tensor([2.8284, 2.8284])
    """
    return _apply_variance(reduce.std, input, dim, unbiased, correction, keepdim)


def var_mean(input: Tensor, dim=None, unbiased: bool | None = None, keepdim: bool = False, *, correction=1) -> tuple:
    """Return variance and mean."""
    return _apply_variance(reduce.var_mean, input, dim, unbiased, correction, keepdim)


def std_mean(input: Tensor, dim=None, unbiased: bool | None = None, keepdim: bool = False, *, correction=1) -> tuple:
    """Return standard deviation and mean."""
    return _apply_variance(reduce.std_mean, input, dim, unbiased, correction, keepdim)


def norm(input: Tensor, p: float | str | None = "fro", dim=None, keepdim: bool = False, dtype=None, out=None) -> Tensor:
    """Return the p-norm over some dims; ``"fro"`` is the 2-norm, ``"nuc"`` the sum of a matrix's singular values.

    Args:
        p: a number, inf, -inf, ``"fro"`` or ``"nuc"``.
        dim: a dim, several, or None for all.

    Returns:
        Splits of other dims stay; a partial sum is reduced first.

    Example:
        >>> flow.norm(flow.tensor([[3.0, 4.0], [0.0, 0.0]]), dim=1)
        tensor([5., 0.])
    """
    if out is not None:
        return into_out(out, norm(input, p, dim, keepdim, dtype))
    if p == "nuc":
        dims = (0, 1) if dim is None else dim
        return dispatch.apply(
            matrix_norm, input, ord="nuc", dim=dims, keepdim=bool(keepdim), dtype=dtypes.as_np_dtype(dtype)
        )
    p = 2.0 if p is None or p == "fro" else p
    cast = {} if dtype is None else {"dtype": dtypes.as_dtype(dtype)}
    return dispatch.apply(reduce.norm, input, p=p if isinstance(p, str) else float(p), dim=dim, keepdim=keepdim, **cast)
