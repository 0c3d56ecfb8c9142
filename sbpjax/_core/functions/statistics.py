"""Statistics composed of other functions: histograms, quantiles, gradients, norms, binomial counts."""

from __future__ import annotations

import builtins
from collections import namedtuple

import jax
import numpy as np
from jax.core import Tracer

from sbpjax._core.ops.dims import one
from sbpjax._core.ops.randoms.random import _key
from sbpjax._core.ops.reductions import sort, stats
from sbpjax._core.tensor.creation.convert import fetch_to_host
from sbpjax._core.tensor.creation.generator import default_generator
from sbpjax._core.tensor.dispatch import dispatch
from sbpjax._core.tensor.dispatch.scalars import hashable
from sbpjax._core.tensor.handle.tensor import Tensor
from sbpjax._core.tensor.storage.indexing import with_layout_of
from sbpjax._core.tensor.storage.payload import payload
from sbpjax.errors import OpError, OpTypeError

from .linear_algebra import linalg
from .table import results

histogram_result = namedtuple("histogram", "hist bin_edges")
histogramdd_result = namedtuple("histogramdd", "hist bin_edges")


def gradient(input: Tensor, *, spacing=1, dim=None, edge_order: int = 1) -> tuple:
    """Return the estimated derivatives along dims (all by default).

    Args:
        input: samples.
        spacing: their distance: a number (1 if None), one for each dim, or for each dim a vector of places.
        dim: the dims.
        edge_order: 1 or 2, the order of the estimate at the ends.
    """
    dims = range(input.ndim) if dim is None else (dim,) if isinstance(dim, int) else dim
    dims = [d % input.ndim for d in dims]
    spacing = 1 if spacing is None else spacing
    if isinstance(spacing, (builtins.int, builtins.float)):
        spacing = [spacing] * len(dims)
    elif isinstance(spacing, Tensor):
        spacing = [spacing]
    if len(spacing) != len(dims):
        rule = f"expected spacing to be unspecified, a scalar or a list of length {len(dims)}"
        raise OpError("gradient(x, spacing=...)", f"{len(spacing)} of them", rule, "spacing=1")
    if edge_order not in (1, 2):
        raise OpError(f"gradient(edge_order={edge_order})", str(edge_order), "edge_order is 1 or 2", "1")
    found = []
    for d, s in zip(dims, spacing, strict=True):
        at, distance_of = (s, 1.0) if isinstance(s, Tensor) and s.ndim else (None, hashable(s))
        found.append(dispatch.apply(stats.gradient_along, input, at, dim=d, spacing=distance_of, edge_order=edge_order))
    return tuple(found)


def _quantile(fn, input: Tensor, q, dim, keepdim: bool, interpolation: str) -> Tensor:
    at = q if interpolation == "linear" and isinstance(q, Tensor) and q.requires_grad else None
    options = {"dim": hashable(dim), "keepdim": builtins.bool(keepdim), "interpolation": interpolation}
    if isinstance(q, Tensor) and isinstance(payload(q), Tracer):  # its numbers come later
        if fn is sort.quantile:
            return dispatch.apply(stats.quantile_in_trace, input, q, **options)
        return dispatch.apply(fn, input, q, q=None, **options)
    return dispatch.apply(fn, input, at, q=hashable(q.tolist() if isinstance(q, Tensor) else q), **options)


def quantile(input: Tensor, q, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"):
    """Return the q-quantiles along a dim, or of all elements; NaN where there is any NaN.

    Args:
        input: float32 or float64.
        q: a number in [0, 1], or several as a sequence or a vector, which make a new first dim. Of a tensor there is a
            gradient with ``"linear"``.
        dim: the dim, or None.
        keepdim: keep the dim with size 1.
        interpolation: between neighbours: ``"linear"``, ``"lower"``, ``"higher"``, ``"midpoint"`` or ``"nearest"``.

    Returns:
        The other dims, after one of ``q`` if that has several. Splits of other dims stay.

    Raises:
        OpError: ``input`` is neither float32 nor float64.
        OpValueError: ``q`` is outside [0, 1], or another ``interpolation``.

    Example:
        >>> flow.quantile(flow.tensor([1.0, 2.0, 3.0, 4.0]), 0.5)
        tensor(2.5000)
    """
    return results.float64(_quantile(sort.quantile, input, q, dim, keepdim, interpolation))


def nanquantile(input: Tensor, q, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"):
    """Return the `quantile` of the elements that are not NaN; arguments, result and errors as there."""
    return _quantile(stats.nanquantile, input, q, dim, keepdim, interpolation)


def _edges(input: Tensor, bins, span) -> Tensor:
    count = bins.numel() - 1 if isinstance(bins, Tensor) else int(bins)
    if count < 1:
        rule = f"histogram(): bins must be > 0, but got {count}"
        raise OpError("histogram(x, bins)", f"{count} bins", rule, "bins=10, or at least two edges")
    if isinstance(bins, Tensor):
        return bins
    values = fetch_to_host(input.detach())
    low, high = span if span is not None else (values.min(), values.max()) if values.size else (0.0, 1.0)
    if span is None and low == high:
        low, high = low - 0.5, high + 0.5
    if not np.isfinite([low, high]).all() or low > high:
        rule = f"histogram: range of [{low}, {high}] is not finite or not in order"
        raise OpError("histogram(x)", f"range {low}, {high}", rule, "range=(0.0, 1.0)")
    return with_layout_of(np.linspace(low, high, count + 1).astype(input.dtype.np), input)


def histogram(
    input: Tensor,
    bins: int | Tensor,
    *,
    range: tuple[float, float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
):
    """Return the number (or the weight) of elements in each bin, and the edges of the bins."""
    if not input.dtype.is_floating_point:
        rule = "histogram: not implemented for integers"
        raise OpTypeError("histogram(x)", f"a {input.dtype!r} tensor", rule, "x.float()")
    edges = _edges(input, bins, range)
    counts = dispatch.apply(stats.histogram_counts, input.detach(), edges, weight, density=density)
    return histogram_result(counts, edges)


def histogramdd(input: Tensor, bins, *, range=None, weight: Tensor | None = None, density: bool = False):
    """Return the histogram of points in the rows of the last dim, in as many dims, and the edges per dim."""
    if not input.is_floating_point():
        rule = "histogramdd is defined for floating point"
        raise OpTypeError("histogramdd(x)", f"a {input.dtype.name} tensor", rule, "x.float()")
    count = input.shape[-1]
    points = fetch_to_host(input.detach()).reshape(-1, count)
    each = [bins] * count if isinstance(bins, int) else list(bins)
    spans = [None] * count if range is None else [tuple(range[2 * i : 2 * i + 2]) for i in builtins.range(count)]
    columns = [input.detach().reshape(-1, count).select(1, i) for i in builtins.range(count)]
    edges = [_edges(c, b, s) for c, b, s in zip(columns, each, spans, strict=True)]
    weights = None if weight is None else fetch_to_host(weight).reshape(-1)
    counts, _ = np.histogramdd(points, [fetch_to_host(e) for e in edges], weights=weights, density=density)
    return histogramdd_result(with_layout_of(counts.astype(input.dtype.np), input), tuple(edges))


def unravel_index(indices: Tensor, shape) -> tuple:
    """Return flat indices as one index per dim of a shape."""
    if indices.dtype.is_floating_point or indices.dtype.is_complex or indices.dtype.name == "bool":
        rule = f"expected 'indices' to be integer dtype, but got {indices.dtype.name}"
        raise OpTypeError("unravel_index(...)", f"indices of {indices.dtype.name}", rule, "indices.long()")
    sizes = (shape,) if isinstance(shape, int) else tuple(hashable(tuple(shape)))
    found, rest = [], indices.long()
    for n in reversed(sizes):
        found.append(rest % n)
        rest = rest // n
    return tuple(reversed(found))


def sum_to_size(input: Tensor, *size) -> Tensor:
    """Return the tensor summed to a shape that broadcasts to its own."""
    size = tuple(size[0]) if len(size) == 1 and isinstance(size[0], (tuple, list)) else tuple(size)
    extra = input.ndim - len(size)
    fits = extra >= 0 and all(n in (1, m) for n, m in zip(size, input.shape[extra:], strict=True))
    if not fits:
        rule = f"size {list(size)} is not expandable to size {list(input.shape)}"
        raise OpError(f"x.sum_to_size{size}", f"x {list(input.shape)}", rule, "x.sum(...)")
    if not size:
        return input.sum()  # of a number, too, which goes to int64 as in PyTorch
    dims = [*range(extra), *[d + extra for d, n in enumerate(size) if n == 1 and input.shape[d + extra] != 1]]
    return input.sum(dims, keepdim=True).reshape(size) if dims else input


def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    """Return the norms of the slices of a dim, with all dims kept; of everything for dim -1."""
    one(dim, v.ndim, "norm_except_dim")
    if dim == -1:
        return v.norm(pow)
    return v.norm(pow, [d for d in range(v.ndim) if d != dim % v.ndim], keepdim=True)


def frobenius_norm(input: Tensor, dim, keepdim: bool = False) -> Tensor:
    """Return the root of the sum of squares over dims."""
    return input.norm(2, dim, keepdim)


def nuclear_norm(input: Tensor, dim=(-2, -1), keepdim: bool = False) -> Tensor:
    """Return the sum of the singular values."""
    return linalg.matrix_norm(input, "nuc", dim, keepdim)


def binomial(count: Tensor, prob: Tensor, generator=None) -> Tensor:
    """Return binomial counts of successes in ``count`` trials of probability ``prob``."""
    key = (default_generator if generator is None else generator).key()
    return dispatch.apply(_binomial, key, count.detach(), prob.detach())


def _binomial(key, count, prob, /):
    shape = np.broadcast_shapes(count.shape, prob.shape)
    return jax.random.binomial(_key(key), count, prob, shape=shape, dtype=count.dtype)
