"""Reduction ops with torch's result dtypes and gradients.

Worked case: on int32 `[[1, 2], [3, 4]]`, `sum(dim=-1)` is int64 `[3, 7]` (torch sums integers in int64), `mean`
raises for integers, and `max(dim=0)` gives values int32 `[3, 4]` and indices int64 `[1, 1]`. At ties, `amax` and the
maximum of all elements spread the gradient evenly, while `max(dim)` gives it to the element that the index names: as
in torch. bfloat16 and float16 are summed in float32 and rounded once.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..dims import fail, no_complex, one, restore_dims, several
from ..elementwise import magnitude
from ..promote import BOOL, DEFAULT_FLOAT, INT64, broadcast_to, cast, category, compute_dtype, is_float, size_as
from ..shapes.gather import pick
from ..slopes import zero_where
from .products import product


def _summand_dtype(x, dtype) -> np.dtype:
    """Return the result dtype of a sum or product: integers and bools add up in int64."""
    if dtype is not None:
        return np.dtype(dtype)
    return x.dtype if is_float(x.dtype) else INT64


def _sum(x, axes: tuple[int, ...]):
    """Sum in the accumulation dtype; no equation if there is nothing to reduce."""
    return lax.reduce_sum(x, axes) if axes else x


def sum(x, /, dim=None, keepdim: bool = False, dtype=None):
    """Return the sum over ``dim`` (None or () for all).

    Args:
        dim: dim, dims or None.
        keepdim: keep the reduced dims with size 1.
        dtype: cast to it before summing; by default integers and bools go to int64.
        x: any dtype.

    Example:
        >>> x = flow.tensor([[1.0, 2.0], [3.0, 4.0]]).to_global(flow.placement("cpu", [0, 1]), flow.sbp.split(0))
        >>> x.sum(dim=0).sbp, x.sum(dim=1).sbp
        ((sbpjax.sbp.partial_sum,), (sbpjax.sbp.split(dim=0),))
        >>> x.sum(dim=0).tolist(), flow.sum(x).item()
        ([4.0, 6.0], 10.0)
    """
    axes = several(dim, x.ndim, "sum")
    dtype = _summand_dtype(x, dtype)
    total = _sum(cast(x, compute_dtype(dtype)), axes)
    return cast(restore_dims(total, axes, keepdim), dtype)


def nansum(x, /, dim=None, keepdim: bool = False, dtype=None):
    """Return the sum over ``dim`` with NaN counted as 0."""
    no_complex(x, "nansum", "shape")
    if is_float(x.dtype):
        x = lax.select_n(lax.ne(x, x), x, broadcast_to(np.zeros((), x.dtype), x.shape))
    return sum(x, dim=dim, keepdim=keepdim, dtype=dtype)


def _check_float_dtype(x, name: str) -> None:
    if not is_float(x.dtype):
        rule = f"Can only calculate the {name} of floating types. It got {x.dtype}"
        fail("type", f"{name}(x)", f"x of dtype {x.dtype}", rule, f"{name}(x.float())")


def mean(x, /, dim=None, keepdim: bool = False, dtype=None):
    """Return the mean over ``dim``; the input or ``dtype`` is floating point.

    Example:
        >>> x = flow.tensor([[1.0, 2.0], [3.0, 4.0]]).to_global(flow.placement("cpu", [0, 1]), flow.sbp.split(0))
        >>> x.mean(dim=0).sbp, x.mean(dim=1).sbp
        ((sbpjax.sbp.partial_sum,), (sbpjax.sbp.split(dim=0),))
        >>> x.mean(dim=0).tolist()
        [2.0, 3.0]
    """
    x = x if dtype is None else cast(x, dtype)
    _check_float_dtype(x, "mean")
    axes = several(dim, x.ndim, "mean")
    wide = compute_dtype(x.dtype)
    count = math.prod(x.shape[d] for d in axes)
    total = _sum(cast(x, wide), axes)
    return cast(restore_dims(lax.div(total, size_as(count, wide)), axes, keepdim), x.dtype)


def nanmean(x, /, dim=None, keepdim: bool = False, dtype=None):
    """Return the mean over ``dim`` of the elements that are not NaN."""
    x = x if dtype is None else cast(x, dtype)
    count = sum(lax.eq(x, x), dim=dim, keepdim=keepdim)
    return lax.div(nansum(x, dim=dim, keepdim=keepdim), cast(count, x.dtype))


def prod(x, /, dim=None, keepdim: bool = False, dtype=None):
    """Return the product over ``dim``; its gradient is right with zeros too.

    Args:
        dtype: cast to it first; by default integers and bools go to int64.

    Example:
        >>> flow.prod(flow.tensor([[1, 2], [3, 4]]), dim=1)
        tensor([ 2, 12])
    """
    axes = several(dim, x.ndim, "prod")
    dtype = _summand_dtype(x, dtype)
    x = cast(x, compute_dtype(dtype))
    if axes:
        x = product(x, axes) if is_float(dtype) else lax.reduce_prod(x, axes)
    return cast(restore_dims(x, axes, keepdim), dtype)


def _check_elements(x, axes: tuple[int, ...], name: str) -> None:
    """Raise unless there is an element to reduce; IndexError where other dims are kept, as in PyTorch."""
    if 0 in (x.shape[d] for d in axes):
        fail(
            "index" if len(axes) < x.ndim else "shape",
            f"{name}(dim={axes})",
            f"x {x.shape}",
            "the reduced dim has at least one element",
            "check x.numel() first",
        )


def _extreme(x, axes: tuple[int, ...], name: str):
    if not axes:
        return x
    _check_elements(x, axes, name)
    if x.dtype == BOOL:
        return lax.reduce_or(x, axes) if name.endswith("max") else lax.reduce_and(x, axes)
    return _extreme_number(x, axes, name)


@functools.partial(jax.custom_jvp, nondiff_argnums=(1, 2))
def _extreme_number(x, axes: tuple[int, ...], name: str):
    return lax.reduce_max(x, axes) if name.endswith("max") else lax.reduce_min(x, axes)


@_extreme_number.defjvp
def _extreme_jvp(axes, name, primals, tangents):
    """Share the slope among the elements equal to the extreme; where that is NaN, among the NaNs, or (amax) none."""
    (x,), (t,) = primals, tangents
    out = _extreme_number(x, axes, name)
    whole = broadcast_to(restore_dims(out, axes, True), x.shape)
    equal = lax.eq(x, whole)
    if not name.startswith("a"):
        equal = lax.bitwise_or(equal, lax.bitwise_and(lax.ne(x, x), lax.ne(whole, whole)))
    return out, lax.reduce_sum(lax.mul(t, _shares(equal, x.dtype, axes)), axes)


def _shares(equal, dtype, axes: tuple[int, ...]):
    """Return 1 / n at the n places that hold along axes, 0 elsewhere; NaN where there is none."""
    count = restore_dims(lax.reduce_sum(cast(equal, dtype), axes), axes, True)
    nothing = lax.select_n(lax.eq(count, np.zeros((), dtype)), lax.full_like(count, 0), lax.full_like(count, np.nan))
    share = lax.div(lax.full_like(count, 1), count)
    return lax.select_n(equal, broadcast_to(nothing, equal.shape), broadcast_to(share, equal.shape))


def amax(x, /, dim=None, keepdim: bool = False):
    """Return the maximum over ``dim``; ties share the gradient evenly, NaN wins.

    Raises:
        OpError: there is no element to reduce; `OpIndexError` if other dims are kept.

    Example:
        >>> flow.amax(flow.tensor([[1.0, 2.0], [3.0, 0.0]]), dim=0)
        tensor([3., 2.])
    """
    axes = several(dim, x.ndim, "amax")
    return restore_dims(_extreme(x, axes, "amax"), axes, keepdim)


def amin(x, /, dim=None, keepdim: bool = False):
    """Return the minimum over ``dim``; ties share the gradient evenly, NaN wins.

    Raises:
        OpError: there is no element to reduce; `OpIndexError` if other dims are kept.

    Example:
        >>> flow.amin(flow.tensor([[1.0, 2.0], [3.0, 0.0]]), dim=(0, 1))
        tensor(0.)
    """
    axes = several(dim, x.ndim, "amin")
    return restore_dims(_extreme(x, axes, "amin"), axes, keepdim)


def aminmax(x, /, dim=None, keepdim: bool = False):
    """Return the pair of `amin` and `amax`."""
    return amin(x, dim=dim, keepdim=keepdim), amax(x, dim=dim, keepdim=keepdim)


def _arg(x, dim: int, name: str):
    if x.ndim == 0:
        return jnp.zeros((), INT64)
    if x.shape[dim] == 0:
        fail("index", f"{name}(dim={dim})", f"x {x.shape}", "the dim has at least one element", "check x.shape first")
    return (lax.argmax if name.endswith("max") else lax.argmin)(x, dim, INT64)


def argmax(x, /, dim: int | None = None, keepdim: bool = False, dtype=None):
    """Return the index of the first maximum along ``dim`` or in the flattened x; int64 by default; NaN is largest.

    Args:
        dim: the dim, or None for the flattened tensor.
        dtype: an integer dtype of the result.

    Raises:
        OpError: ``x`` is bool or complex.
        OpIndexError: there is no such dim, or it has no element.

    Example:
        >>> flow.argmax(flow.tensor([[1.0, 5.0], [7.0, 3.0]]), dim=1)
        tensor([1, 0])
    """
    found = _argextreme(x, dim, keepdim, "argmax")
    return found if dtype is None else cast(found, dtype)


def argmin(x, /, dim: int | None = None, keepdim: bool = False, dtype=None):
    """Return the index of the first minimum along ``dim`` or in the flattened x; int64 by default; NaN is least.

    Args:
        dim: the dim, or None for the flattened tensor.
        dtype: an integer dtype of the result.

    Raises:
        OpError: ``x`` is bool or complex.
        OpIndexError: there is no such dim, or it has no element.

    Example:
        >>> flow.argmin(flow.tensor([[1.0, 5.0], [7.0, 3.0]]))
        tensor(0)
    """
    found = _argextreme(x, dim, keepdim, "argmin")
    return found if dtype is None else cast(found, dtype)


def _argextreme(x, dim, keepdim: bool, name: str):
    if x.dtype == BOOL or category(x.dtype) == 3:
        fail("shape", f"{name}(x)", f"x of dtype {x.dtype}", f"{name}() does not support bool or complex", "x.int()")
    if dim is not None:
        dim = one(dim, x.ndim, name)
        return restore_dims(_arg(x, dim, name), (dim,) if x.ndim else (), keepdim)
    flat = lax.reshape(x, (x.size,)) if x.ndim != 1 else x
    return restore_dims(_arg(flat, 0, name), tuple(range(x.ndim)), keepdim)


def _find_extreme(x, dim: int, keepdim: bool, name: str):
    dim = one(dim, x.ndim, name)
    if x.ndim == 0:
        return x, jnp.zeros((), INT64)
    index = _arg(x, dim, "arg" + name)
    values = pick(x, index, dim)
    return restore_dims(values, (dim,), keepdim), restore_dims(index, (dim,), keepdim)


def max(x, /, dim: int | None = None, keepdim: bool = False):
    """Return the maximum of all elements, or with ``dim`` the pair (values, int64 indices of the first maxima)."""
    return _extreme(x, tuple(range(x.ndim)), "max") if dim is None else _find_extreme(x, dim, keepdim, "max")


def min(x, /, dim: int | None = None, keepdim: bool = False):
    """Return the minimum of all elements, or with ``dim`` the pair (values, int64 indices of the first minima)."""
    return _extreme(x, tuple(range(x.ndim)), "min") if dim is None else _find_extreme(x, dim, keepdim, "min")


def _logical(x, dim, keepdim: bool, reduction):
    axes = () if dim in ((), []) else several(dim, x.ndim, "all/any")  # of no dims: element by element, as in torch
    out = cast(x, BOOL)
    out = restore_dims(reduction(out, axes) if axes else out, axes, keepdim)
    return cast(out, np.uint8) if x.dtype == np.uint8 else out


def all(x, /, dim=None, keepdim: bool = False):
    """Return whether all elements are nonzero; bool, or uint8 for uint8.

    Example:
        >>> x = flow.tensor([[1.0, 2.0], [3.0, 4.0]]).to_global(flow.placement("cpu", [0, 1]), flow.sbp.split(0))
        >>> (x > 0).all().item(), (x > 0).all().sbp
        (True, (sbpjax.sbp.broadcast,))
    """
    return _logical(x, dim, keepdim, lax.reduce_and)


def any(x, /, dim=None, keepdim: bool = False):
    """Return whether any element is nonzero; bool, or uint8 for uint8.

    Example:
        >>> flow.any(flow.tensor([[0, 1], [0, 0]]), dim=1)
        tensor([ True, False])
    """
    return _logical(x, dim, keepdim, lax.reduce_or)


def count_nonzero(x, /, dim=None):
    """Return the int64 number of nonzero elements over ``dim``.

    Example:
        >>> flow.count_nonzero(flow.tensor([[0, 1], [2, 3]]), dim=1)
        tensor([1, 2])
    """
    return sum(cast(x, BOOL), dim=dim)


def hash_tensor(x, /, dim=(), keepdim: bool = False, mode: int = 0):
    """Return the exclusive or of the bits of the elements, as float64 or int64, over ``dim``; uint64.

    Args:
        dim: dim or dims; () for all.
        keepdim: keep the reduced dims with size 1.
        mode: 0, the exclusive or.

    Raises:
        OpError: another mode, or there is no element to reduce; `OpIndexError` if other dims are kept.
        OpNotSupportedError: complex numbers.

    Example:
        >>> flow.hash_tensor(flow.tensor([1, 2, 4]))
        tensor(7, dtype=sbpjax.uint64)
    """
    if mode != 0:
        fail("shape", f"hash_tensor(mode={mode})", f"x {x.shape}", f"Unknown hash_tensor mode: {mode}", "mode=0")
    no_complex(x, "hash_tensor")
    axes = several(dim, x.ndim, "hash_tensor")
    _check_elements(x, axes, "hash_tensor")
    bits = lax.bitcast_convert_type(cast(x, np.float64 if is_float(x.dtype) else INT64), np.uint64)
    return restore_dims(lax.reduce_xor(bits, axes) if axes else bits, axes, keepdim)


def _moments(x, dim, correction: float, name: str):
    """Return (mean, variance) with the dims kept, in the accumulation dtype, and the axes."""
    _check_float_dtype(x, name)
    axes = several(dim, x.ndim, name)
    x = cast(x, compute_dtype(x.dtype))
    if x.dtype.kind != "c":
        return *_real_moments(x, axes, correction, dim is None or x.ndim == 0), axes
    center = _mean_keepdims(x, axes)
    off = lax.sub(x, center)
    square = lax.add(lax.square(lax.real(off)), lax.square(lax.imag(off)))
    return center, _mean_square(square, axes, correction), axes


def _mean_keepdims(x, axes: tuple[int, ...]):
    count = math.prod(x.shape[d] for d in axes)
    return restore_dims(lax.div(_sum(x, axes), np.asarray(count, x.dtype)), axes, True)


def _freedom(x, axes: tuple[int, ...], correction: float) -> float:
    """Return the degrees of freedom, 0 if there are none."""
    count = math.prod(x.shape[d] for d in axes)
    return count - correction if count > correction else 0


def _mean_square(square, axes: tuple[int, ...], correction: float):
    total = restore_dims(_sum(square, axes), axes, True)
    return lax.div(total, np.asarray(_freedom(square, axes, correction), square.dtype))  # 0 / 0 is NaN, as in torch


@functools.partial(jax.custom_jvp, nondiff_argnums=(1, 2, 3))
def _real_moments(x, axes: tuple[int, ...], correction: float, whole: bool):
    center = _mean_keepdims(x, axes)
    return center, _mean_square(lax.square(lax.sub(x, center)), axes, correction)


@_real_moments.defjvp
def _real_moments_jvp(axes, correction, whole, primals, tangents):
    """Return the tangents; the slope of the variance is ``2 (x - mean) / freedom``, also for negative freedom.

    Without freedom torch has NaN at the mean of the whole tensor and infinity elsewhere.
    """
    (x,), (t,) = primals, tangents
    center, variance = _real_moments(x, axes, correction, whole)
    free = math.prod(x.shape[d] for d in axes) - correction
    off = lax.sub(x, center)
    if free > 0 or not whole:
        slope = lax.mul(off, np.asarray(2 / free if free else np.inf, x.dtype))
    else:
        slope = lax.select_n(lax.eq(off, np.zeros((), x.dtype)), lax.full_like(x, np.inf), lax.full_like(x, np.nan))
    return (center, variance), (_mean_keepdims(t, axes), restore_dims(_sum(lax.mul(t, slope), axes), axes, True))


def _finish(x, axes, keepdim: bool, dtype):
    return cast(x if keepdim or not axes else lax.squeeze(x, axes), dtype)


def _real(dtype):
    return np.dtype(f"float{dtype.itemsize * 4}") if dtype.kind == "c" else dtype


def var(x, /, dim=None, correction: float = 1, keepdim: bool = False):
    """Return the variance over ``dim``, divided by the count minus ``correction``."""
    _, variance, axes = _moments(x, dim, correction, "var")
    return _finish(variance, axes, keepdim, _real(x.dtype))


def _safe_sqrt(x):
    """Return sqrt(x) with gradient 0, not inf, at 0."""
    zero = lax.eq(x, np.zeros((), x.dtype))
    safe = lax.select_n(zero, x, broadcast_to(np.ones((), x.dtype), x.shape))
    return lax.select_n(zero, lax.sqrt(safe), broadcast_to(np.zeros((), x.dtype), x.shape))


def std(x, /, dim=None, correction: float = 1, keepdim: bool = False):
    """Return the standard deviation over ``dim``; where it is 0 its gradient is 0."""
    _, variance, axes = _moments(x, dim, correction, "std")
    return _finish(_safe_sqrt(variance), axes, keepdim, _real(x.dtype))


def var_mean(x, /, dim=None, correction: float = 1, keepdim: bool = False):
    """Return the pair (variance, mean) over ``dim``."""
    center, variance, axes = _moments(x, dim, correction, "var_mean")
    return _finish(variance, axes, keepdim, _real(x.dtype)), _finish(center, axes, keepdim, x.dtype)


def std_mean(x, /, dim=None, correction: float = 1, keepdim: bool = False):
    """Return the pair (standard deviation, mean) over ``dim``."""
    center, variance, axes = _moments(x, dim, correction, "std_mean")
    return _finish(_safe_sqrt(variance), axes, keepdim, _real(x.dtype)), _finish(center, axes, keepdim, x.dtype)


def logsumexp(x, /, dim=None, keepdim: bool = False):
    """Return log(sum(e**x)) over ``dim`` without overflow; integers become float32.

    Example:
        >>> flow.logsumexp(flow.tensor([[0.0, 0.0], [1000.0, 1000.0]]), dim=1)
        tensor([6.9315e-01, 1.0007e+03])
    """
    x = x if is_float(x.dtype) else cast(x, DEFAULT_FLOAT)
    axes = several(dim, x.ndim, "logsumexp")
    wide = cast(x, compute_dtype(x.dtype))
    is_complex = np.issubdtype(wide.dtype, np.complexfloating)
    if not axes:
        if not is_complex:
            return x
        turn = lax.imag(wide)  # a logarithm's imaginary part is in (-pi, pi]
        return cast(lax.complex(lax.real(wide), lax.atan2(lax.sin(turn), lax.cos(turn))), x.dtype)
    if 0 in x.shape:
        return cast(restore_dims(lax.log(lax.reduce_sum(lax.exp(wide), axes)), axes, keepdim), x.dtype)
    real = lax.real(wide) if is_complex else wide
    top = lax.stop_gradient(lax.reduce_max(real, axes))
    top = cast(lax.select_n(lax.is_finite(top), broadcast_to(np.zeros((), top.dtype), top.shape), top), wide.dtype)
    total = lax.reduce_sum(lax.exp(lax.sub(wide, restore_dims(top, axes, True))), axes)
    return cast(restore_dims(lax.add(lax.log(total), top), axes, keepdim), x.dtype)


def norm(x, /, p: float | str = 2.0, dim=None, keepdim: bool = False, dtype=None):
    """Return the p-norm of the elements over ``dim`` (a vector norm, whatever the number of dims).

    Args:
        x: floats.
        p: a number, inf, -inf, or ``"fro"`` for 2; 0 counts the nonzero elements. The gradient at a zero norm is 0.
        dim: dim, dims or None for all.
        keepdim: keep the reduced dims with size 1.
        dtype: cast to it first.
    """
    x = x if dtype is None else cast(x, dtype)
    _check_float_dtype(x, "norm")
    order = 2.0 if p == "fro" else p
    if isinstance(order, str):
        fail("value", f"norm(p={p!r})", f"x {x.shape}", "p is a number, inf, -inf or 'fro'", "norm(x, p=2)")
    axes = several(dim, x.ndim, "norm")
    if category(x.dtype) == 3:
        if order == 2:
            parts = lax.add(lax.square(lax.real(x)), lax.square(lax.imag(x)))
            return restore_dims(_safe_sqrt(_sum(parts, axes)), axes, keepdim)
        x = lax.abs(x)
    wide = cast(x, compute_dtype(x.dtype))
    return cast(restore_dims(_norm(wide, order, axes), axes, keepdim), x.dtype)


def _norm(x, p: Any, axes: tuple[int, ...]):
    if p == 2:
        return _safe_sqrt(_sum(lax.square(x), axes))
    size = magnitude(x)
    if p == 1:
        return _sum(size, axes)
    if math.isinf(p):
        return _extreme(size, axes, "max" if p > 0 else "min")
    if p == 0:
        return _sum(cast(lax.ne(x, np.zeros((), x.dtype)), x.dtype), axes)
    return _p_norm(x, float(p), axes) if axes else size


@functools.partial(jax.custom_jvp, nondiff_argnums=(1, 2))
def _p_norm(x, p: float, axes: tuple[int, ...]):
    """Return ``sum(|x|**p)**(1 / p)``."""
    total = lax.reduce_sum(lax.pow(lax.abs(x), np.asarray(p, x.dtype)), axes)
    return lax.pow(total, np.asarray(1.0 / p, x.dtype))


@_p_norm.defjvp
def _power_mean_jvp(p, axes, primals, tangents):
    """Scale the sum over the elements last: nothing of an infinite norm is lost at zeros, as in torch."""
    (x,), (t,) = primals, tangents
    out = _p_norm(x, p, axes)
    zero, less = np.zeros((), x.dtype), np.asarray(p - 1, x.dtype)
    if p < 1:
        scaled = zero_where(lax.mul(lax.sign(x), lax.pow(lax.abs(x), less)), lax.eq(x, zero))
        return out, lax.mul(lax.reduce_sum(lax.mul(t, scaled), axes), lax.pow(out, lax.neg(less)))
    if p < 2:
        scaled = lax.mul(lax.sign(x), lax.pow(lax.abs(x), less))
    else:
        scaled = lax.mul(x, lax.pow(lax.abs(x), np.asarray(p - 2, x.dtype)))
    safe = lax.select_n(lax.eq(out, zero), out, lax.full_like(out, 1))  # all elements are 0 then
    return out, lax.div(lax.reduce_sum(lax.mul(t, scaled), axes), lax.pow(safe, less))
