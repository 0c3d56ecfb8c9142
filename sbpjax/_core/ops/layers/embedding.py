"""Embedding and index ops: embedding, one-hot, bincount, searchsorted, gather_nd and scatter_nd.

Worked case: `embedding(ids (B, T), weight (V, D))` is one gather of whole rows, (B, T, D); with the weight split by
rows each rank gives the rows that it holds and zeros elsewhere, a partial_sum, with no exchange of the table.
"""

from __future__ import annotations

import numpy as np
from jax import lax

from ..dims import fail
from ..promote import BOOL, INT64, broadcast_to, cast, compute_dtype, promote
from ..shapes.gather import FILL, _integers, pick, put_rows, take_rows


def embedding(index, weight, /, padding_idx: int | None = None, scale_grad_by_freq: bool = False):
    """Return the rows of a table that the index names.

    Args:
        index: integers of any shape; one outside the table reads NaN. For several tables its last dim has one for each.
        weight: ``(V, D)``, or several tables of one size, ``(F, V, D)``.
        padding_idx: a row that gets no gradient from here.
        scale_grad_by_freq: divide each row's gradient by the number of times that it is named.
    """
    if index.dtype not in (np.int32, np.int64):
        fail("shape", "embedding(index)", f"an index of {index.dtype}", "the index is int32 or int64", "index.long()")
    if weight.ndim == 3:
        return _rows_of_tables(index, weight, padding_idx, scale_grad_by_freq)
    if weight.ndim != 2:
        fail(
            "shape", "embedding(index, weight)", f"weight {weight.shape}", "the weight is (V, D)", "reshape the weight"
        )
    out = take_rows(weight, index, 0)
    if scale_grad_by_freq:
        times = take_rows(bincount(lax.reshape(index, (index.size,)), length=weight.shape[0]), index, 0)
        share = lax.expand_dims(cast(times, out.dtype), (index.ndim,))
        still = lax.stop_gradient(out)
        out = lax.add(still, lax.div(lax.sub(out, still), share))
    return _mask_padding(index, weight.shape[0], out, padding_idx)


def _rows_of_tables(index, weight, padding_idx: int | None, scale_grad_by_freq: bool):
    """Return of each table the rows that its column of the index names; a split of tables goes along with columns."""
    count = weight.shape[0]
    seen = f"index {index.shape}, weight {weight.shape}"
    if not index.ndim or index.shape[-1] != count:
        rule = f"of weights (F, V, D) the last dim of the index has a number for each of the {count} tables"
        fail("shape", "embedding(index, weight)", seen, rule, "an index of (batch, tables)")
    if scale_grad_by_freq:
        rule = "scale_grad_by_freq counts the rows of one table"
        fail("value", "embedding(index, weight)", seen, rule, "scale_grad_by_freq=False")
    numbers = lax.GatherDimensionNumbers(
        offset_dims=(index.ndim,),
        collapsed_slice_dims=(1,),
        start_index_map=(1,),
        operand_batching_dims=(0,),
        start_indices_batching_dims=(index.ndim - 1,),
    )
    sizes = (1, 1, weight.shape[2])
    out = lax.gather(weight, lax.expand_dims(index, (index.ndim,)), numbers, sizes, mode=FILL)
    return _mask_padding(index, weight.shape[1], out, padding_idx)


def _mask_padding(index, size: int, out, padding_idx: int | None):
    """Return looked-up rows of which those of a number get no gradient."""
    if padding_idx is None:
        return out
    if not -size <= padding_idx < size:
        rule = "Padding_idx must be within num_embeddings: it names a row"
        fail("assertion", f"embedding(padding_idx={padding_idx})", f"a weight of {size} rows", rule, "padding_idx=None")
    padded = lax.eq(index, np.asarray(padding_idx % size, index.dtype))
    padded = lax.broadcast_in_dim(padded, out.shape, tuple(range(index.ndim)))
    return lax.select_n(padded, out, lax.stop_gradient(out))


def one_hot(x, /, num_classes: int, on_value=1, off_value=0, dtype=INT64):
    """Return a new last dim of size ``num_classes`` with ``on_value`` at the class and ``off_value`` elsewhere."""
    if x.dtype not in (np.int64, np.int32):
        rule = "one_hot is only applicable to index tensor. It has an integer dtype"
        fail("shape", "one_hot(x)", f"x of {x.dtype}", rule, "x.long()")
    shape = (*x.shape, num_classes)
    classes = lax.broadcasted_iota(x.dtype, shape, x.ndim)
    hit = lax.eq(classes, lax.expand_dims(x, (x.ndim,)))
    if (on_value, off_value) == (1, 0):
        return cast(hit, dtype)
    on, off = (broadcast_to(cast(v, dtype), shape) for v in (on_value, off_value))
    return lax.select_n(hit, off, on)


def bincount(x, weights=None, /, length: int = 0):
    """Return how often 0, …, length - 1 occur in a vector, or the sums of their weights.

    Args:
        x: integers of one dim; one outside the length is not counted.
        weights: one per element, or None.
        length: the size of the result (static: torch's is data-dependent, the caller computes it).
    """
    _integers(x, "bincount")
    if x.ndim != 1 or (weights is not None and weights.shape != x.shape):
        fail("shape", "bincount", f"x {x.shape}", "x has 1 dim, and the weights its shape", "x.flatten()")
    if weights is None:
        weights = lax.full(x.shape, 1, INT64)
    elif weights.dtype not in (np.float32, np.float64):
        weights = cast(weights, np.float64)
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    return lax.scatter_add(lax.full((length,), 0, weights.dtype), lax.expand_dims(x, (1,)), weights, numbers, mode=FILL)


def _nd_numbers(index, ndim: int):
    """Return the dims that the last dim of an nd-index names, and the positions of the whole dims in the result."""
    depth = index.shape[-1]
    if depth > ndim:
        fail(
            "shape",
            "an nd-index",
            f"index {index.shape}, {ndim} dims",
            f"its last dim is at most {ndim}",
            "shorten the index",
        )
    lead = index.ndim - 1
    return tuple(range(depth)), tuple(range(lead, lead + ndim - depth))


def gather_nd(x, index, /):
    """Return ``x[index[..., 0], index[..., 1], …]``: the index's last dim names the leading dims of x."""
    dims, window = _nd_numbers(index, x.ndim)
    numbers = lax.GatherDimensionNumbers(offset_dims=window, collapsed_slice_dims=dims, start_index_map=dims)
    sizes = tuple(1 if d in dims else n for d, n in enumerate(x.shape))
    return lax.gather(x, index, numbers, sizes, mode=FILL)


def _scatter_nd(x, index, updates, scatter, **options):
    dims, window = _nd_numbers(index, x.ndim)
    numbers = lax.ScatterDimensionNumbers(window, dims, dims)
    return scatter(x, index, cast(updates, x.dtype), numbers, mode=FILL, **options)


def scatter_nd(index, updates, /, shape):
    """Return zeros of ``shape`` with the updates added at the places of an nd-index."""
    return _scatter_nd(lax.full(tuple(shape), 0, updates.dtype), index, updates, lax.scatter_add)


def tensor_scatter_nd_update(x, index, updates, /):
    """Return x with the updates written at the places of an nd-index."""
    return _scatter_nd(x, index, updates, lax.scatter, unique_indices=True)


def tensor_scatter_nd_add(x, index, updates, /):
    """Return x with the updates added at the places of an nd-index."""
    return _scatter_nd(x, index, updates, lax.scatter_add)


def searchsorted(edges, x, /, right: bool = False, dtype=INT64):
    """Return the number of sorted edges before each x: the place where x would go.

    Args:
        edges: ``(N,)``, or ``(..., N)`` with the leading dims of x; sorted along the last dim.
        x: array or number.
        right: whether an edge equal to x counts as before it.
        dtype: int64 or int32.
    """
    edges, x = promote(edges, x)
    before = lax.le if right else lax.lt
    edges = edges if edges.ndim > 1 else lax.expand_dims(edges, tuple(range(np.ndim(x))))
    if edges.ndim == np.ndim(x) + 1:
        edges_full, x_full = edges, lax.expand_dims(x, (np.ndim(x),))
    else:
        edges_full, x_full = lax.expand_dims(edges, (edges.ndim - 1,)), lax.expand_dims(x, (np.ndim(x),))
    hit = before(edges_full, x_full)
    if np.dtype(x.dtype).kind == "f":  # NaN goes last
        hit = lax.bitwise_or(hit, broadcast_to(lax.ne(x_full, x_full), hit.shape))
    return lax.reduce_sum(cast(hit, dtype), (hit.ndim - 1,))


def bucketize(x, edges, /, right: bool = False, dtype=INT64):
    """Return the bucket of each x between sorted edges: `searchsorted` with the arguments swapped."""
    return searchsorted(edges, x, right=right, dtype=dtype)


def in_top_k(targets, predictions, /, k: int):
    """Return for each row whether fewer than k classes are predicted above the target's class."""
    own = lax.expand_dims(pick(predictions, targets, 1), (1,))
    above = lax.reduce_sum(cast(lax.gt(predictions, own), np.int32), (1,))
    return lax.bitwise_and(lax.lt(above, np.int32(k)), lax.is_finite(lax.squeeze(own, (1,))))


def nonzero(x, /, size: int):
    """Return the ``(size, ndim)`` int64 indices of the nonzero elements in row-major order.

    ``size`` is their number (static: the caller counts first); with fewer places the rest is 0.
    """
    mask = lax.reshape(cast(x, BOOL), (x.size,))
    order = lax.sub(lax.cumsum(cast(mask, INT64), 0), np.int64(1))
    target = lax.select_n(mask, lax.full((x.size,), size, INT64), order)
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    flat = lax.scatter(
        lax.full((size,), 0, INT64), lax.expand_dims(target, (1,)), lax.iota(INT64, x.size), numbers, mode=FILL
    )
    columns = []
    for n in reversed(x.shape):
        columns.append(lax.expand_dims(lax.rem(flat, np.int64(max(n, 1))), (1,)))
        flat = lax.div(flat, np.int64(max(n, 1)))
    return lax.concatenate(columns[::-1], 1) if columns else lax.full((size, 0), 0, INT64)


def nonzero_static(x, /, size: int, fill_value: int = -1):
    """Return ``size`` rows of `nonzero`, those beyond the number of nonzero elements filled with a number."""
    found = nonzero(x, size=size)
    count = lax.reduce_sum(cast(cast(x, BOOL), INT64), tuple(range(x.ndim)))
    there = lax.lt(lax.broadcasted_iota(INT64, found.shape, 0), count)
    return lax.select_n(there, lax.full(found.shape, fill_value, INT64), found)


def embedding_bag(
    x,
    weight,
    offsets=None,
    per_sample_weights=None,
    /,
    mode: str = "mean",
    include_last_offset: bool = False,
    padding_idx: int | None = None,
    scale_grad_by_freq: bool = False,
):
    """Return sums, means or maxima of rows of a table, one per bag.

    Args:
        x: integers ``(B, K)``, each row a bag, or ``(L,)`` with offsets.
        weight: ``(V, D)``.
        offsets: ``(B,)`` where each bag begins in x, or None.
        per_sample_weights: of x's shape, factors of the rows (sums only), or None.
        mode: ``"sum"``, ``"mean"`` or ``"max"``; an empty bag gives zeros.
        include_last_offset: the last offset is the end of the last bag.
        padding_idx: a row that does not count and gets no gradient.
        scale_grad_by_freq: divide each row's gradient by how often x names it.
    """
    if mode not in ("sum", "mean", "max"):
        fail("value", f"embedding_bag(mode={mode!r})", f"x {x.shape}", "mode has to be one of sum, mean or max", "mean")
    if x.ndim not in (1, 2) or (x.ndim == 1) != (offsets is not None):
        seen = f"x of {x.ndim} dims, offsets {None if offsets is None else offsets.shape}"
        rule = "input is 2D of fixed length bags without offsets, or 1D with offsets"
        fail("value", "embedding_bag", seen, rule, "offsets=sbpjax.tensor([0])")
    _integers(x, "embedding_bag")
    rows = embedding(x, weight, padding_idx=padding_idx, scale_grad_by_freq=scale_grad_by_freq)
    padding = None if padding_idx is None else padding_idx % weight.shape[0]
    return reduce_bags(x, rows, offsets, per_sample_weights, mode, include_last_offset, padding)


def reduce_bags(
    x,
    rows,
    offsets=None,
    per_sample_weights=None,
    /,
    mode: str = "mean",
    include_last_offset: bool = False,
    padding_idx: int | None = None,
):
    """Return sums, means or maxima of rows that were looked up, see `embedding_bag`."""
    if per_sample_weights is not None:
        rows = lax.mul(rows, broadcast_to(lax.expand_dims(cast(per_sample_weights, rows.dtype), (x.ndim,)), rows.shape))
    counted = None
    if padding_idx is not None:
        counted = lax.ne(x, np.asarray(padding_idx, x.dtype))
    if x.ndim == 2:
        return _bagged_rows(rows, counted, mode)
    bags = offsets.shape[0] - bool(include_last_offset)
    bag = _bag_of(offsets, x.shape[0])
    if mode == "max":
        number = lax.broadcasted_iota(INT64, (bags, x.shape[0]), 0)
        inside = lax.eq(broadcast_to(lax.expand_dims(bag, (0,)), number.shape), number)
        if counted is not None:
            inside = lax.bitwise_and(inside, broadcast_to(counted, inside.shape))
        return _largest(lax.broadcast_in_dim(rows, (bags, *rows.shape), (1, 2)), inside)
    if counted is not None:
        rows = lax.select_n(lax.broadcast_in_dim(counted, rows.shape, (0,)), lax.full_like(rows, 0), rows)
    exact = cast(rows, compute_dtype(rows.dtype))
    total = _sums(exact, bag, bags)
    if mode == "mean":
        ones = lax.full(bag.shape, 1, exact.dtype) if counted is None else cast(counted, exact.dtype)
        total = _shares(total, _sums(ones, bag, bags))
    return cast(total, rows.dtype)


def _bag_of(offsets, length: int):
    """Return the bag of each of so many places: -1 before the first offset."""
    begins = _sums(lax.full(offsets.shape, 1, INT64), cast(offsets, INT64), length)
    return lax.sub(lax.cumsum(begins), np.int64(1))


def _sums(rows, bag, bags: int):
    """Return the sum of the rows of each bag; rows of no bag are left out."""
    nothing = lax.full((bags, *rows.shape[1:]), 0, rows.dtype)
    return put_rows(nothing, bag, rows, 0, add=True) if rows.size and nothing.size else nothing


def _shares(total, count):
    """Return sums over their counts; an empty bag stays 0."""
    count = lax.max(count, np.ones((), count.dtype))
    return lax.div(total, broadcast_to(lax.expand_dims(count, (1,)), total.shape))


def _largest(rows, counted):
    """Return the maxima over dim 1 of ``(B, K, D)`` of the elements that count, 0 where none does."""
    lowest = lax.full_like(rows, -np.inf)
    mask = lax.broadcast_in_dim(counted, rows.shape, (0, 1))
    values = lax.select_n(mask, lowest, rows)
    best = lax.argmax(lax.stop_gradient(values), 1, INT64)
    top = pick(values, best, 1)
    some = lax.reduce_or(counted, (1,))
    return lax.select_n(lax.broadcast_in_dim(some, top.shape, (0,)), lax.full_like(top, 0), top)


def _bagged_rows(rows, counted, mode: str):
    if counted is None:
        if mode == "max" and rows.shape[1]:
            return pick(rows, lax.argmax(lax.stop_gradient(rows), 1, INT64), 1)
        total = lax.reduce_sum(rows, (1,))
        return total if mode != "mean" else lax.div(total, np.asarray(max(rows.shape[1], 1), rows.dtype))
    if mode == "max":
        return _largest(rows, counted)
    mask = lax.broadcast_in_dim(counted, rows.shape, (0, 1))
    total = lax.reduce_sum(lax.select_n(mask, lax.full_like(rows, 0), rows), (1,))
    return total if mode == "sum" else _shares(total, lax.reduce_sum(cast(counted, total.dtype), (1,)))
