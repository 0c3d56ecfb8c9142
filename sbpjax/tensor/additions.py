"""The less common of PyTorch's functions: distances, statistics, integer pairs, scatters into copies, lists of blocks.

Loaded when one of them is first asked for (`sbpjax._lazy`).
"""

from __future__ import annotations

import builtins
from collections import namedtuple
from operator import index as as_int

import numpy as np

from sbpjax.errors import OpError, OpTypeError, message
from sbpjax.ops import distance, pairs, place, special, stats
from sbpjax.ops.dims import one

from . import dispatch
from . import dtype as dtypes
from .binding import bind, hashable, into_out, publish
from .bounds import check_dim, check_size
from .convert import host
from .indexing import _with
from .oneflow_arguments import take_oneflow
from .op import op_of
from .tensor import Tensor

gcd, lcm, nextafter, ldexp = (bind(getattr(pairs, n)) for n in ("gcd", "lcm", "nextafter", "ldexp"))
signbit = bind(pairs.signbit, ("input",))
logaddexp2, igamma, igammac = (bind(getattr(special, n)) for n in ("logaddexp2", "igamma", "igammac"))
i0 = bind(special.i0, ("input",))
mvlgamma = bind(special.mvlgamma, ("input",))
dist = bind(distance.dist, ("input", "other"))
renorm = bind(distance.renorm, ("input",))
corrcoef = bind(stats.corrcoef, ("input",))
diagflat = bind(place.diagflat, ("input",))
diagonal_scatter = bind(place.diagonal_scatter, ("input", "src"))
select_scatter = bind(place.select_scatter, ("input", "src"))
slice_scatter = bind(place.slice_scatter, ("input", "src"))
vdot = bind(place.vdot, ("input", "other"))

frexp_result = namedtuple("frexp", "mantissa exponent")
histogram_result = namedtuple("histogram", "hist bin_edges")
histogramdd_result = namedtuple("histogramdd", "hist bin_edges")


def _run(fn, inputs: tuple, /, **static) -> Tensor:
    return dispatch.run(op_of(fn, tuple((k, hashable(v)) for k, v in static.items())), inputs)


def _finish(result, out):
    return result if out is None else into_out(out, result)


def polygamma(n, input=None, *, out=None) -> Tensor:
    """Return the n-th derivative of digamma; as a method, ``x.polygamma(n)``."""
    n, input = (input, n) if isinstance(n, Tensor) else (n, input)
    return _finish(_run(special.polygamma, (input,), n=as_int(n)), out)


def frexp(input: Tensor, *, out=None):
    """Return mantissas and int32 exponents, as ``(mantissa, exponent)``."""
    found = frexp_result(*_run(pairs.frexp, (input,)))
    return found if out is None else into_out(out, tuple(found))


# -------------------------------------------------------------------------------------------------------- statistics


def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary") -> Tensor:
    """Return the p-norm distances of all pairs of rows; `compute_mode` changes nothing: all are computed directly."""
    return _run(distance.cdist, (x1, x2), p=float(p))


def cov(
    input: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
) -> Tensor:
    """Return the covariances of variables in the rows, with samples in the columns."""
    return _run(stats.cov, (input, fweights, aweights), correction=as_int(correction))


def _integral(fn, y, x, dx, dim):
    return _run(fn, (y, x), dx=1.0 if dx is None else dx, dim=as_int(dim))


def trapezoid(y: Tensor, x: Tensor | None = None, *, dx=None, dim: int = -1) -> Tensor:
    """Return the integral along a dim by trapezoids, between samples at ``x`` or ``dx`` apart."""
    return _integral(stats.trapezoid, y, x, dx, dim)


trapz = trapezoid


def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx=None, dim: int = -1) -> Tensor:
    """Return the running integral along a dim by trapezoids."""
    return _integral(stats.cumulative_trapezoid, y, x, dx, dim)


def gradient(input: Tensor, *, spacing=1, dim=None, edge_order: int = 1) -> tuple:
    """Return the estimated derivatives along dims (all by default).

    Args:
        input: samples.
        spacing: their distance: a number, one for each dim, or for each dim a vector of places.
        dim: the dims.
        edge_order: 1 or 2, the order of the estimate at the ends.
    """
    dims = range(input.ndim) if dim is None else (dim,) if isinstance(dim, int) else dim
    dims = [d % input.ndim for d in dims]
    if isinstance(spacing, (builtins.int, builtins.float)):
        spacing = [spacing] * len(dims)
    elif isinstance(spacing, Tensor):
        spacing = [spacing]
    if len(spacing) != len(dims):
        rule = f"expected spacing to be unspecified, a scalar or a list of length {len(dims)}"
        raise OpError(message("gradient(x, spacing=...)", f"{len(spacing)} of them", rule, "spacing=1"))
    if edge_order not in (1, 2):
        raise OpError(message(f"gradient(edge_order={edge_order})", str(edge_order), "edge_order is 1 or 2", "1"))
    found = []
    for d, s in zip(dims, spacing, strict=True):
        at, distance_of = (s, 1.0) if isinstance(s, Tensor) and s.ndim else (None, hashable(s))
        found.append(_run(stats.gradient_along, (input, at), dim=d, spacing=distance_of, edge_order=edge_order))
    return tuple(found)


def nanquantile(
    input: Tensor, q, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear", out=None
) -> Tensor:
    """Return quantiles of what is no NaN, along a dim or of all elements."""
    q = tuple(q.tolist()) if isinstance(q, Tensor) and q.ndim else hashable(q)
    found = _run(stats.nanquantile, (input,), q=q, dim=dim, keepdim=keepdim, interpolation=interpolation)
    return _finish(found, out)


def _edges(input: Tensor, bins, span) -> Tensor:
    if isinstance(bins, Tensor):
        return bins
    values = host(input.detach())
    low, high = span if span is not None else (values.min(), values.max()) if values.size else (0.0, 1.0)
    if span is None and low == high:
        low, high = low - 0.5, high + 0.5
    if not np.isfinite([low, high]).all() or low > high:
        rule = f"histogram: range of [{low}, {high}] is not finite or not in order"
        raise OpError(message("histogram(x)", f"range {low}, {high}", rule, "range=(0.0, 1.0)"))
    return _with(np.linspace(low, high, int(bins) + 1).astype(input.dtype.np), input)


def histogram(
    input: Tensor,
    bins: int | Tensor,
    *,
    range: tuple[float, float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
    out=None,
):
    """Return the number (or the weight) of elements in each bin, and the edges of the bins."""
    if not input.dtype.is_floating_point:
        rule = "histogram: not implemented for integers"
        raise OpTypeError(message("histogram(x)", f"a {input.dtype!r} tensor", rule, "x.float()"))
    edges = _edges(input, bins, range)
    counts = _run(stats.histogram_counts, (input.detach(), edges, weight), density=density)
    found = histogram_result(counts, edges)
    return found if out is None else into_out(out, tuple(found))


def histogramdd(input: Tensor, bins, *, range=None, weight: Tensor | None = None, density: bool = False):
    """Return the histogram of points in the rows of the last dim, in as many dims, and the edges per dim."""
    if not input.is_floating_point():
        rule = "histogramdd is defined for floating point"
        raise OpTypeError(message("histogramdd(x)", f"a {input.dtype.name} tensor", rule, "x.float()"))
    count = input.shape[-1]
    points = host(input.detach()).reshape(-1, count)
    each = [bins] * count if isinstance(bins, int) else list(bins)
    spans = [None] * count if range is None else [tuple(range[2 * i : 2 * i + 2]) for i in builtins.range(count)]
    columns = [input.detach().reshape(-1, count).select(1, i) for i in builtins.range(count)]
    edges = [_edges(c, b, s) for c, b, s in zip(columns, each, spans, strict=True)]
    weights = None if weight is None else host(weight).reshape(-1)
    counts, _ = np.histogramdd(points, [host(e) for e in edges], weights=weights, density=density)
    return histogramdd_result(_with(counts.astype(input.dtype.np), input), tuple(edges))


# ----------------------------------------------------------------------------------------------- scatters and blocks


def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Return a copy with elements of ``source`` written (or added) where a flat index names."""
    check_size("put(x, index, source)", index, input.shape.numel(), 0, negative=True)
    return _run(place.put, (input, index, source), accumulate=accumulate)


def index_reduce(
    input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Return a copy with slices of ``source`` reduced into the slices of a dim that ``index`` names."""
    check_dim(f"index_reduce(x, {dim}, index)", index, input, int(dim))
    static = {"dim": int(dim), "reduce": reduce, "include_self": bool(include_self)}
    return _run(place.index_reduce, (input, index, source), **static)


def batch_gather(input: Tensor, indices: Tensor) -> Tensor:
    """Return ``input[b, indices[b, m]]``: an index of its own for each of the leading dims."""
    check_size("batch_gather(x, indices)", indices, input.shape[indices.ndim - 1], indices.ndim - 1)
    return _run(place.batch_gather, (input, indices))


def block_diag(*tensors) -> Tensor:
    """Return matrices along the diagonal of a larger one."""
    return _run(place.block_diag, tensors)


def cartesian_prod(*tensors) -> Tensor:
    """Return all tuples of elements of vectors, as rows."""
    return _run(place.cartesian_prod, tensors)


def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """Return all ``r``-element subsets of a vector, as rows."""
    return _run(place.combinations, (input,), r=as_int(r), with_replacement=with_replacement)


def dsplit(input: Tensor, indices_or_sections) -> tuple:
    """Return `tensor_split` along dim 2."""
    from .more import _even

    return _even(input, indices_or_sections, 2, "dsplit", 3)


def narrow_copy(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """Return a copy of what `narrow` shows."""
    return input.narrow(dim, start, length).clone()


def split_with_sizes(input: Tensor, split_sizes, dim: int = 0) -> tuple:
    """Return views of parts of a dim of the sizes listed."""
    return input.split(list(split_sizes), dim)


def _corner(row: int, col: int, offset: int, lower: bool, options: dict) -> Tensor:
    from .from_data import tensor

    if row < 0 or col < 0:
        raise OpError(message("tril_indices(row, col)", f"({row}, {col})", "no size is negative", "(3, 3)"))
    values = np.stack((np.tril_indices if lower else np.triu_indices)(row, offset, col))
    dtype = options.pop("dtype", None)
    options.pop("layout", None)
    options.pop("pin_memory", None)
    return tensor(values.astype((dtypes.int64 if dtype is None else dtypes.of(dtype)).np), **options)


def tril_indices(row: int, col: int, offset: int = 0, *, dtype=None, device=None, layout=None) -> Tensor:
    """Return the rows and the columns of the lower triangle's elements, as two rows."""
    return _corner(row, col, offset, True, {"dtype": dtype, "device": device})


def triu_indices(row: int, col: int, offset: int = 0, *, dtype=None, device=None, layout=None) -> Tensor:
    """Return the rows and the columns of the upper triangle's elements, as two rows."""
    return _corner(row, col, offset, False, {"dtype": dtype, "device": device})


def unravel_index(indices: Tensor, shape) -> tuple:
    """Return flat indices as one index per dim of a shape."""
    if indices.dtype.is_floating_point or indices.dtype.is_complex or indices.dtype.name == "bool":
        rule = f"expected 'indices' to be integer dtype, but got {indices.dtype.name}"
        raise OpTypeError(message("unravel_index(...)", f"indices of {indices.dtype.name}", rule, "indices.long()"))
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
        raise OpError(message(f"x.sum_to_size{size}", f"x {list(input.shape)}", rule, "x.sum(...)"))
    dims = [*range_of(extra), *[d + extra for d, n in enumerate(size) if n == 1 and input.shape[d + extra] != 1]]
    return input.sum(dims, keepdim=True).reshape(size) if dims else input


def range_of(n: int) -> range:
    """Return Python's ``range``, whose name is an argument in this file."""
    return builtins.range(n)


def constant_pad_nd(input: Tensor, pad, value=0) -> Tensor:
    """Return `nn.functional.pad` with a number."""
    from sbpjax.nn.functional import pad as padded

    return padded(input, pad, "constant", value)


def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    """Return the norms of the slices of a dim, with all dims kept; of everything for dim -1."""
    one(dim, v.ndim, "norm_except_dim")
    if dim == -1:
        return v.norm(pow)
    return v.norm(pow, [d for d in range_of(v.ndim) if d != dim % v.ndim], keepdim=True)


def frobenius_norm(input: Tensor, dim, keepdim: bool = False) -> Tensor:
    """Return the root of the sum of squares over dims."""
    return input.norm(2, dim, keepdim)


def nuclear_norm(input: Tensor, dim=(-2, -1), keepdim: bool = False) -> Tensor:
    """Return the sum of the singular values."""
    from sbpjax import linalg

    return linalg.matrix_norm(input, "nuc", dim, keepdim)


def binomial(count: Tensor, prob: Tensor, generator=None) -> Tensor:
    """Return binomial counts of successes in ``count`` trials of probability ``prob``."""
    from .generator import default_generator

    key = (default_generator if generator is None else generator).key()
    return dispatch.run(op_of(_binomial), (key, count.detach(), prob.detach()))


def _binomial(key, count, prob, /):
    import jax

    from sbpjax.ops.random import _key

    shape = np.broadcast_shapes(count.shape, prob.shape)
    return jax.random.binomial(_key(key), count, prob, shape=shape, dtype=count.dtype)


publish(globals(), "frobenius_norm nuclear_norm index_reduce histogram")
publish(globals(), "histogramdd norm_except_dim gradient dsplit put", out=False)
take_oneflow(globals())
