"""Cumulative sums, products and extremes along one dim, whole on every rank; other dims may be split.

Worked case: `cummax` of `[1, 3, 2, 3]` gives values `[1, 3, 3, 3]` and indices `[0, 1, 1, 3]`: at a tie the later
place counts.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..arithmetic import logaddexp
from ..dims import fail, one, restore_dims
from ..promote import DEFAULT_FLOAT, INT64, broadcast_to, cast, compute_dtype, is_float
from ..shapes.gather import take_along
from ..slopes import zero_where
from .products import running_product


def _accumulate(x, dim: int, function, name: str):
    dim = one(dim, x.ndim, name)
    return function(x, dim) if x.ndim and x.size else x


def _sum_along(x, dim: int, dtype, function, name: str):
    dtype = np.dtype(dtype) if dtype is not None else (x.dtype if is_float(x.dtype) else INT64)
    return cast(_accumulate(cast(x, compute_dtype(dtype)), dim, function, name), dtype)


def cumsum(x, /, dim: int, dtype=None):
    """Return the running sum along ``dim``; integers and bools add up in int64.

    Args:
        dtype: cast to it first; by default integers and bools go to int64.

    Example:
        >>> x = flow.tensor([[1, 2, 3], [4, 5, 6]]).to_global(flow.placement("cpu", [0, 1]), flow.sbp.split(0))
        >>> x.cumsum(1).tolist(), x.cumsum(1).sbp
        ([[1, 3, 6], [4, 9, 15]], (sbpjax.sbp.split(dim=0),))
    """
    return _sum_along(x, dim, dtype, lax.cumsum, "cumsum")


def cumprod(x, /, dim: int, dtype=None):
    """Return the running product along ``dim``; integers and bools multiply in int64.

    Args:
        dtype: cast to it first; by default integers and bools go to int64.

    Example:
        >>> flow.cumprod(flow.tensor([1, 2, 3, 4]), 0)
        tensor([ 1,  2,  6, 24])
    """
    return _sum_along(x, dim, dtype, _product, "cumprod")


def _product(x, dim: int):
    return running_product(x, dim) if is_float(x.dtype) else lax.cumprod(x, dim)


def logcumsumexp(x, /, dim: int):
    """Return the logarithm of the running sum of exponentials along ``dim``."""
    x = x if is_float(x.dtype) else cast(x, DEFAULT_FLOAT)
    return cast(_accumulate(cast(x, compute_dtype(x.dtype)), dim, _log_sum, "logcumsumexp"), x.dtype)


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def _log_sum(x, dim: int):
    return _complex_log_sum(x, dim) if x.dtype.kind == "c" else lax.cumlogsumexp(x, dim)


def _complex_log_sum(x, dim: int):
    """Add one number after the other, as torch does: the angle of a logarithm depends on the order by whole turns."""
    rows = jnp.moveaxis(x, dim, 0)

    def add(total, row):
        total = logaddexp(row, total)
        return total, total

    after = lax.scan(add, rows[0], rows[1:])[1]
    return jnp.moveaxis(jnp.concatenate([rows[:1], after]), 0, dim)


@_log_sum.defjvp
def _log_sum_jvp(dim, primals, tangents):
    """Return torch's slopes of the logarithms at infinities: NaN there, and everywhere along a dim with a NaN."""
    (x,), (t,) = primals, tangents
    out = _log_sum(x, dim)
    if x.dtype.kind == "c":
        return out, jax.jvp(functools.partial(_complex_log_sum, dim=dim), (x,), (t,))[1]
    most = np.finfo(x.dtype).max
    endless = lax.eq(out, lax.full_like(out, np.inf))
    nan = broadcast_to(restore_dims(lax.reduce_or(lax.ne(x, x), (dim,)), (dim,), True), x.shape)
    lost = lax.bitwise_or(lax.eq(x, lax.full_like(x, np.inf)), lax.eq(out, lax.full_like(out, -np.inf)))
    scale = lax.select_n(lax.bitwise_or(nan, lost), lax.full_like(x, 1), lax.full_like(x, np.nan))
    tame = zero_where(lax.clamp(np.asarray(-most, x.dtype), x, np.asarray(most, x.dtype)), lax.bitwise_or(nan, endless))
    slope = jax.jvp(functools.partial(lax.cumlogsumexp, axis=dim), (tame,), (lax.mul(t, scale),))[1]
    return out, zero_where(slope, endless)


def cummax(x, /, dim: int):
    """Return the running maximum along ``dim`` and the int64 place of its last occurrence; NaN is the largest."""
    return _extreme(x, dim, lax.cummax, lax.ge, "cummax")


def cummin(x, /, dim: int):
    """Return the running minimum along ``dim`` and the int64 place of its last occurrence; NaN is the smallest."""
    return _extreme(x, dim, lax.cummin, lax.le, "cummin")


def _extreme(x, dim: int, cumulate, reached, name: str):
    dim = one(dim, x.ndim, name)
    if x.ndim == 0 or x.size == 0:
        return x, lax.full(x.shape, 0, INT64)
    still = lax.stop_gradient(x)
    order = cast(still, np.uint8) if x.dtype == np.bool_ else still
    hit = reached(order, cumulate(order, dim))
    if is_float(x.dtype):
        hit = lax.bitwise_or(hit, lax.ne(still, still))
    place = lax.broadcasted_iota(INT64, x.shape, dim)
    index = lax.cummax(lax.select_n(hit, lax.full(x.shape, 0, INT64), place), dim)
    return take_along(x, index, dim), index


def diff(x, /, n: int = 1, dim: int = -1):
    """Return the differences of neighbours along ``dim``, n times over; of bools, their exclusive or."""
    if n < 0:
        rule = f"order must be non-negative but got {n}"
        fail("value", f"diff(n={n})", f"x {x.shape}", rule, "n=1")
    dim = one(dim, x.ndim, "diff")
    n = min(n, x.shape[dim])  # nothing is left then
    for _ in range(n):
        size = x.shape[dim]
        late = lax.slice_in_dim(x, min(1, size), size, axis=dim)
        early = lax.slice_in_dim(x, 0, max(size - 1, 0), axis=dim)
        x = lax.bitwise_xor(late, early) if x.dtype == np.bool_ else lax.sub(late, early)
    return x
