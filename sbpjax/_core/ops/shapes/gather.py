"""Gather and scatter ops: torch's index functions, and lax forms for reductions and losses.

`jnp.take_along_axis` builds index grids for every dim; here the other dims are *batching dims* of one gather, so it
is one equation that splits along each of them. Worked case: x of shape (N, C), index of shape (N,): `pick(x, index,
1)[n]` is `x[n, index[n]]`.

An index outside the dim reads NaN (the smallest integer for integers) and writes nothing: wrong data never looks right.
Where torch counts negative indices from the end (`take`, `take_along_dim`, `index_fill`, ``x[i]``), so do these;
elsewhere a negative index is outside.
"""

from __future__ import annotations

import numpy as np
from jax import lax

from ..dims import fail, one, same_dtype, shape_text
from ..promote import BOOL, broadcast_to, cast, category, is_float, is_number, joint_shape, size_as
from ..slopes import slopes

FILL = lax.GatherScatterMode.FILL_OR_DROP


def wrap_negative(index, size: int):
    """Return an index with negative values counted from the end of a dim of ``size``."""
    if np.dtype(index.dtype).kind == "u":
        return index
    zero = np.zeros((), index.dtype)
    return lax.select_n(lax.lt(index, zero), index, lax.add(index, size_as(size, index.dtype)))


def _gather_elements(x, index, dim: int, batch: tuple[int, ...]):
    """Return elements of ``dim``, one per element of the index, whose dims ``batch`` go along with x's other dims."""
    numbers = lax.GatherDimensionNumbers(
        offset_dims=(),
        collapsed_slice_dims=(dim,),
        start_index_map=(dim,),
        operand_batching_dims=tuple(d for d in range(x.ndim) if d != dim),
        start_indices_batching_dims=batch,
    )
    return lax.gather(x, lax.expand_dims(index, (index.ndim,)), numbers, (1,) * x.ndim, mode=FILL)


def pick(x, index, dim: int):
    """Return one element of ``dim`` per place: the shape of x without ``dim``, and of ``index``."""
    return _gather_elements(x, index, dim, tuple(range(x.ndim - 1)))


def take_along(x, index, dim: int):
    """Return ``x[..., index[..., j, ...], ...]`` along ``dim``; the index has x's shape but for that dim."""
    return _gather_elements(x, index, dim, tuple(d for d in range(x.ndim) if d != dim))


def _scatter_along(x, index, source, dim: int, scatter, **options):
    others = tuple(d for d in range(x.ndim) if d != dim)
    numbers = lax.ScatterDimensionNumbers(
        update_window_dims=(),
        inserted_window_dims=(dim,),
        scatter_dims_to_operand_dims=(dim,),
        operand_batching_dims=others,
        scatter_indices_batching_dims=others,
    )
    return scatter(x, lax.expand_dims(index, (index.ndim,)), source, numbers, mode=FILL, **options)


def take_rows(x, index, dim: int):
    """Return whole slices of x along ``dim``: shape ``x.shape[:dim] + index.shape + x.shape[dim + 1:]``."""
    offset = (*range(dim), *range(dim + index.ndim, x.ndim - 1 + index.ndim))
    numbers = lax.GatherDimensionNumbers(offset_dims=offset, collapsed_slice_dims=(dim,), start_index_map=(dim,))
    sizes = tuple(1 if d == dim else n for d, n in enumerate(x.shape))
    return lax.gather(x, lax.expand_dims(index, (index.ndim,)), numbers, sizes, mode=FILL)


def slices(x, indices, /, axis: int = 0):
    """Return slices of x along a dim; negative indices count from its end.

    Args:
        x: any shape.
        indices: integers of any shape; their dims replace the dim.
        axis: the dim.
    """
    axis = axis % x.ndim
    return take_rows(x, wrap_negative(indices, x.shape[axis]), axis)


def put_rows(x, index, source, dim: int, add: bool):
    """Return x with whole slices along ``dim`` written, or added."""
    window = tuple(d for d in range(x.ndim) if d != dim)
    numbers = lax.ScatterDimensionNumbers(
        update_window_dims=window, inserted_window_dims=(dim,), scatter_dims_to_operand_dims=(dim,)
    )
    index = lax.expand_dims(index, (1,))
    if add:
        return lax.scatter_add(x, index, source, numbers, mode=FILL)
    # unique: of repeated places one wins, and each gets the gradient of the written value, as in torch
    return lax.scatter(x, index, source, numbers, unique_indices=True, mode=FILL)


def _integers(index, op: str):
    if np.dtype(index.dtype).kind not in "iu":
        fail("type", op, f"an index of dtype {index.dtype}", "the index has an integer dtype", "index.long()")


def check_index(index, op: str) -> None:
    """Raise unless an index is int32 or int64."""
    if index.dtype not in (np.int32, np.int64):
        rule = f"{op}(): Expected dtype int32 or int64 for index"
        fail("type", op, f"an index of dtype {index.dtype}", rule, "index.long()")


def _check_dims(x, index, dim: int, op: str):
    """Return (dim, x, index) with 0-d tensors as 1-d; check their dims."""
    dim = one(dim, x.ndim, op)
    if not index.size:  # addresses nothing: neither its shape nor its dtype matters
        return dim, x, index
    check_index(index, op)
    x = x if x.ndim else lax.reshape(x, (1,))
    index = index if index.ndim else lax.reshape(index, (1,))
    if x.ndim != index.ndim:
        fail(
            "shape",
            op,
            f"x {x.shape}, index {index.shape}",
            "x and index have equally many dims",
            "unsqueeze the index",
        )
    if any(n > m for d, (n, m) in enumerate(zip(index.shape, x.shape)) if d != dim):
        fail(
            "shape",
            op,
            f"x {x.shape}, index {index.shape}",
            _index_size_rule(x.shape, index.shape, dim),
            "slice it",
        )
    return dim, x, index


def _index_size_rule(shape, index, dim: int) -> str:
    """Return the rule that an index breaks which is larger than its source."""
    at = next(d for d, (n, m) in enumerate(zip(index, shape)) if n > m and d != dim)
    sizes = f"expected index {shape_text(index)} to be smaller than self {shape_text(shape)}"
    return f"Size does not match at dimension {at} {sizes} apart from dimension {dim}"


def _slice_to_shape(x, shape, dim: int):
    """Return the front of x that has the sizes of ``shape`` but for ``dim``."""
    stop = tuple(n if d == dim else m for d, (n, m) in enumerate(zip(x.shape, shape)))
    return x if stop == x.shape else lax.slice(x, (0,) * x.ndim, stop)


def gather(x, index, /, dim: int):
    """Return ``out[i][j] = x[index[i][j]][j]`` for dim 0, and so on for other dims; the shape of the index.

    Args:
        index: integers, of as many dims.

    Returns:
        The shape of the index. Both may be split alike in another dim, which stays.

    Raises:
        OpTypeError: the index is neither int32 nor int64.
        OpError: not as many dims, or larger in another dim.

    Example:
        >>> flow.gather(flow.tensor([[1, 2], [3, 4]]), 1, flow.tensor([[1], [0]]))
        tensor([[2],
                [3]])
    """
    shape = index.shape
    dim, x, index = _check_dims(x, index, dim, "gather")
    if not index.size:  # a part of x without elements, which keeps the gradient's path
        return lax.reshape(lax.slice(lax.reshape(x, (x.size,)), (0,), (0,)), shape)
    out = take_along(_slice_to_shape(x, index.shape, dim), index, dim)
    return out if out.shape == shape else lax.reshape(out, shape)


def take_along_dim(x, index, /, dim: int | None = None):
    """Return `gather` with x and index broadcast against each other, also from the end; without ``dim`` both flat.

    Args:
        index: integers, which broadcast with ``x`` but for the dim.
        dim: the dim; None for the flattened tensor.

    Returns:
        The shape of the index. Both may be split alike in another dim, which stays.

    Example:
        >>> flow.take_along_dim(flow.tensor([[3, 1], [2, 4]]), flow.tensor([[1, 0], [0, 1]]), dim=1)
        tensor([[1, 3],
                [2, 4]])
    """
    if dim is None:
        return gather(lax.reshape(x, (x.size,)), lax.reshape(index, (index.size,)), dim=0)
    check_index(index, "take_along_dim")
    dim = one(dim, x.ndim, "take_along_dim")
    index = wrap_negative(index, x.shape[dim])
    sizes = [joint_shape((a,), (b,))[0] if d != dim else 0 for d, (a, b) in enumerate(zip(x.shape, index.shape))]
    x = broadcast_to(x, tuple(x.shape[d] if d == dim else n for d, n in enumerate(sizes)))
    index = broadcast_to(index, tuple(index.shape[d] if d == dim else n for d, n in enumerate(sizes)))
    return gather(x, index, dim=dim)


def take(x, index, /):
    """Return elements of the flattened x; negative indices count from the end."""
    check_index(index, "take")
    return take_rows(lax.reshape(x, (x.size,)), wrap_negative(index, x.size), 0)


def _scatter_dim(x, index, source, dim: int, op: str, change):
    """Apply ``change(front of x, index, source)`` and put the front back."""
    shape = x.shape
    dim, x, index = _check_dims(x, index, dim, op)
    if not index.size:
        return lax.reshape(x, shape)
    if not is_number(source):
        same_dtype(op, x, source)
    source = cast(source, x.dtype)
    if np.ndim(source) == 0:
        source = broadcast_to(source, index.shape)
    if source.ndim != index.ndim or any(n > m for n, m in zip(index.shape, source.shape)):
        fail(
            "shape",
            op,
            f"index {index.shape}, src {np.shape(source)}",
            "the index is not larger than src",
            "slice the index",
        )
    source = source if source.shape == index.shape else lax.slice(source, (0,) * source.ndim, index.shape)
    front = _slice_to_shape(x, index.shape, dim)
    out = change(front, index, source, dim)
    out = out if front.shape == x.shape else lax.dynamic_update_slice(x, out, [np.int32(0)] * x.ndim)
    return out if out.shape == shape else lax.reshape(out, shape)


def _write(x, index, source, dim: int):
    return _scatter_along(x, index, source, dim, lax.scatter, unique_indices=True)


def _add(x, index, source, dim: int):
    return _scatter_along(x, index, source, dim, lax.scatter_add)


def scatter(x, index, src, /, dim: int, reduce: str | None = None):
    """Return x with ``out[index[i][j]][j] = src[i][j]`` for dim 0, and so on for other dims.

    Args:
        x: array.
        dim: the dim that is indexed.
        index: integers, of as many dims, in no other dim larger than ``x``.
        src: a tensor at least as large as the index, or a number.
        reduce: None writes, ``"add"`` and ``"multiply"`` combine with the value of ``x``.

    Returns:
        The shape of ``x``. Splits of other dims stay if all are split alike.

    Raises:
        OpTypeError: the index is neither int32 nor int64.
        OpError: not as many dims, or an index larger than ``src``, or than ``x`` in another dim.
        OpValueError: another ``reduce``.

    Example:
        >>> flow.scatter(flow.zeros(2, 3), 1, flow.tensor([[2], [0]]), 1.0)
        tensor([[0., 0., 1.],
                [1., 0., 0.]])
    """
    if reduce is None:
        return _scatter_dim(x, index, src, dim, "scatter", _write)
    if reduce not in ("add", "multiply"):
        fail(
            "value",
            f"scatter(reduce={reduce!r})",
            f"x {x.shape}",
            "reduce is None, 'add' or 'multiply'",
            "scatter_reduce",
        )
    return scatter_reduce(x, index, src, dim=dim, reduce="sum" if reduce == "add" else "prod")


def scatter_add(x, index, src, /, dim: int):
    """Return x with ``out[index[i][j]][j] += src[i][j]`` for dim 0, and so on for other dims.

    Args:
        index: integers, of as many dims.
        src: the dtype of ``x``, at least as large as the index.

    Returns:
        The shape of ``x``. Splits of other dims stay if all are split alike.

    Raises:
        OpTypeError: the index is neither int32 nor int64.
        OpTypeError: ``src`` has another dtype.
        OpError: not as many dims, or an index larger than ``src``, or than ``x`` in another dim.

    Example:
        >>> flow.scatter_add(flow.zeros(3), 0, flow.tensor([0, 0, 2]), flow.tensor([1.0, 2.0, 3.0]))
        tensor([3., 0., 3.])
    """
    if x.dtype == bool:  # true where any is
        same_dtype("scatter_add", x, src)
        total = _scatter_dim(cast(x, np.int32), index, cast(src, np.int32), dim, "scatter_add", _add)
        return cast(total, bool)
    return _scatter_dim(x, index, src, dim, "scatter_add", _add)


def scatter_reduce(x, index, src, /, dim: int, reduce: str, include_self: bool = True):
    """Return x with the elements of src that meet at one place reduced there.

    Args:
        x: array.
        index: as for `scatter`.
        src: array of x's dtype.
        dim: the dim that is indexed.
        reduce: ``"sum"``, ``"prod"``, ``"mean"``, ``"amax"`` or ``"amin"``; at equal extremes the gradient is shared.
        include_self: whether the element of x takes part.
    """
    if reduce not in _REDUCTIONS:
        fail(
            "value",
            f"scatter_reduce(reduce={reduce!r})",
            f"x {x.shape}",
            f"reduce is one of {sorted(_REDUCTIONS)}",
            "reduce='sum'",
        )
    change = _REDUCTIONS[reduce]
    if x.dtype == BOOL and reduce in ("sum", "prod"):  # "or" and "and"
        change = _REDUCTIONS["amax" if reduce == "sum" else "amin"]

    def apply(front, index, source, dim):
        own = lax.stop_gradient(front)
        if not include_self:
            hit = _add(lax.full(front.shape, 0, np.int32), index, lax.full(index.shape, 1, np.int32), dim)
            neutral = broadcast_to(np.asarray(_neutral(reduce, front.dtype), front.dtype), front.shape)
            front = lax.select_n(lax.gt(hit, np.int32(0)), front, neutral)
        return change(front, index, source, dim, include_self, own)

    return _scatter_dim(x, index, src, dim, "scatter_reduce", apply)


def _neutral(reduce: str, dtype):
    if reduce in ("amax", "amin"):
        if dtype == BOOL:
            return reduce == "amin"
        low, high = (-np.inf, np.inf) if is_float(dtype) else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        return low if reduce == "amax" else high
    return 1 if reduce == "prod" else 0


def _mean(x, index, source, dim: int, include_self: bool, own):
    count = lax.full(x.shape, int(include_self), x.dtype)
    count = _add(count, index, lax.full(index.shape, 1, x.dtype), dim)
    count = lax.max(count, np.ones((), x.dtype))
    total = _add(x, index, source, dim)
    if is_float(x.dtype):
        return lax.div(total, count)
    quotient, rest = lax.div(total, count), lax.rem(total, count)
    down = lax.bitwise_and(lax.ne(rest, np.zeros((), x.dtype)), lax.lt(total, np.zeros((), x.dtype)))
    return lax.sub(quotient, cast(down, x.dtype))


def _share_slopes(value, x, source, index, dim: int, x_weight, source_weight):
    """Return ``value`` with the derivatives ``x_weight`` and ``source_weight`` in x and source."""

    def of_source(t, out, value, x, source, index, mine, theirs):
        return _add(lax.full_like(out, 0), index, lax.mul(t, theirs), dim)

    @slopes(None, lambda t, out, value, x, source, index, mine, theirs: lax.mul(t, mine), of_source, None, None, None)
    def reduce(value, x, source, index, mine, theirs):
        return value

    return reduce(lax.stop_gradient(value), x, source, index, x_weight, source_weight)


def _extreme(scatter):
    def change(x, index, source, dim: int, include_self: bool, own):
        # lax's scatter_max has no derivative
        frozen, fixed = lax.stop_gradient(x), lax.stop_gradient(source)
        value = _scatter_along(frozen, index, fixed, dim, scatter)
        if not is_float(x.dtype):
            return value
        ours = cast(lax.eq(own, value), x.dtype)  # PyTorch counts an equal element of x even where it takes no part
        theirs = cast(lax.eq(fixed, take_along(value, index, dim)), x.dtype)
        ties = _add(ours, index, theirs, dim)
        x_weight = lax.div(ours, ties)  # of a NaN, which equals nothing, 0 / 0, as in PyTorch
        source_weight = lax.div(theirs, take_along(ties, index, dim))
        return _share_slopes(value, x, source, index, dim, x_weight, source_weight)

    return change


def _prod(x, index, source, dim: int, include_self: bool, own):
    if not is_float(x.dtype):
        return _scatter_along(x, index, source, dim, lax.scatter_mul)
    # lax's scatter_mul differentiates for unique indices only: the product of the others, by counting zeros
    frozen, fixed = lax.stop_gradient(x), lax.stop_gradient(source)
    zero, one_ = np.zeros((), x.dtype), np.ones((), x.dtype)
    x_zero, source_zero = lax.eq(frozen, zero), lax.eq(fixed, zero)
    x_safe = lax.select_n(x_zero, frozen, broadcast_to(one_, x.shape))
    source_safe = lax.select_n(source_zero, fixed, broadcast_to(one_, source.shape))
    rest = _scatter_along(x_safe, index, source_safe, dim, lax.scatter_mul)
    zeros = _add(cast(x_zero, x.dtype), index, cast(source_zero, x.dtype), dim)

    def others(value_zero, safe, rest, zeros):
        lost = lax.mul(rest, zero)  # NaN where an infinity or a NaN is among the others
        alone = lax.select_n(lax.eq(zeros, one_), lost, rest)
        without = lax.select_n(lax.eq(zeros, zero), lost, lax.div(rest, safe))
        return lax.select_n(value_zero, without, alone)

    value = lax.select_n(lax.eq(zeros, zero), lax.mul(rest, zero), rest)
    x_weight = others(x_zero, x_safe, rest, zeros)
    at = take_along(rest, index, dim), take_along(zeros, index, dim)
    return _share_slopes(value, x, source, index, dim, x_weight, others(source_zero, source_safe, *at))


_REDUCTIONS = {
    "sum": lambda x, index, source, dim, include_self, own: _add(x, index, source, dim),
    "mean": _mean,
    "prod": _prod,
    "amax": _extreme(lax.scatter_max),
    "amin": _extreme(lax.scatter_min),
}


def _vector(index, op: str):
    check_index(index, op)
    if index.ndim > 1:
        rule = f"{op}(): Index is supposed to be a vector"
        fail("bounds", op, f"index {index.shape}", rule, "use x[..., index] or gather")
    return index if index.ndim else lax.reshape(index, (1,))


def index_select(x, index, /, dim: int):
    """Return the slices of x along ``dim`` that a vector names.

    Args:
        index: a vector of integers.

    Returns:
        The shape of ``x`` with the index's size in the dim. Splits of other dims stay, a partial sum stays one.

    Raises:
        OpTypeError: the index is neither int32 nor int64.
        OpBoundsError: the index has several dims.

    Example:
        >>> flow.index_select(flow.tensor([[1, 2, 3], [4, 5, 6]]), 1, flow.tensor([2, 0]))
        tensor([[3, 1],
                [6, 4]])
    """
    dim, index = one(dim, x.ndim, "index_select"), _vector(index, "index_select")
    return take_rows(x, index, dim) if x.ndim else lax.reshape(take_rows(lax.reshape(x, (1,)), index, 0), ())


def slices_fit(op: str, x, source, dim: int) -> None:
    """Raise unless the slices of ``source`` are those of ``x``."""
    if source.ndim == x.ndim and any(n != m for d, (n, m) in enumerate(zip(x.shape, source.shape)) if d != dim):
        rule = "the source has the sizes of x in all dims but the one of the index"
        fail("shape", f"{op}(dim={dim})", f"x {x.shape}, source {source.shape}", rule, "slice the source")


def index_add(x, index, source, /, dim: int, alpha: complex = 1):
    """Return x with ``alpha * source`` added to the slices that a vector names.

    Args:
        index: a vector of integers.
        source: the dtype of ``x``, with the index's size in the dim.
        alpha: factor of the source.

    Returns:
        The shape of ``x``. Splits of other dims stay if ``source`` is split alike.

    Raises:
        OpTypeError: ``source`` has another dtype.
        OpError: the slices of ``source`` have other sizes, or a complex `alpha` of real tensors.

    Example:
        >>> flow.index_add(flow.zeros(3, 2), 0, flow.tensor([0, 2]), flow.ones(2, 2), alpha=5)
        tensor([[5., 5.],
                [0., 0.],
                [5., 5.]])
    """
    dim, index = one(dim, x.ndim, "index_add"), _vector(index, "index_add")
    same_dtype("index_add", x, source)
    slices_fit("index_add", x, source, dim)
    if x.dtype == BOOL:  # of bools the sum is whether any holds
        source = cast(source, np.int32) if alpha else lax.full(source.shape, 0, np.int32)
        return cast(index_add(cast(x, np.int32), index, source, dim), BOOL)
    if isinstance(alpha, complex) and x.dtype.kind != "c":
        rule = f"value cannot be converted to type {x.dtype} without overflow"
        fail("shape", f"index_add(alpha={alpha})", f"tensors of {x.dtype}", rule, f"alpha={alpha.real}")
    source = source if alpha == 1 else lax.mul(source, cast(alpha, source.dtype))
    if x.ndim == 0:
        return lax.reshape(put_rows(lax.reshape(x, (1,)), index, lax.reshape(source, (1,)), 0, True), ())
    return put_rows(x, index, source, dim, True)


def index_copy(x, index, source, /, dim: int):
    """Return x with the slices that a vector names replaced by those of ``source``."""
    dim, index = one(dim, x.ndim, "index_copy"), _vector(index, "index_copy")
    same_dtype("index_copy", x, source)
    if source.ndim != x.ndim or (x.ndim and source.shape[dim] != index.shape[0]):
        seen = f"x {x.shape}, index {index.shape}, source {source.shape}"
        fail("index", f"index_copy(dim={dim})", seen, "source has a slice per index", "source.unsqueeze(0)")
    slices_fit("index_copy", x, source, dim)
    return put_rows(x, index, source, dim, False) if x.ndim else lax.reshape(source, ())


def index_fill(x, index, value, /, dim: int):
    """Return x with the slices that a vector names, also from the end, filled with a number (or 0-d array)."""
    if index.dtype not in (np.int32, np.int64):
        fail("index", "index_fill", f"an index of dtype {index.dtype}", "the index is int64", "index.long()")
    dim, index = one(dim, x.ndim, "index_fill"), _vector(index, "index_fill")
    if x.ndim == 0:
        return lax.reshape(index_fill(lax.reshape(x, (1,)), index, value, dim=0), ())
    index = wrap_negative(index, x.shape[dim])
    sizes = tuple(index.shape[0] if d == dim else n for d, n in enumerate(x.shape))
    return put_rows(x, index, broadcast_to(cast(value, x.dtype), sizes), dim, False)


def masked_fill(x, mask, value, /):
    """Return x with ``value`` (number or 0-d array, cast to x's dtype) where the mask holds; x and mask broadcast.

    Args:
        mask: bools, or integers, of which all but 0 count; broadcast to ``x``.
        value: a number, or a tensor of one element.

    Returns:
        The shape of ``x``; a split stays.

    Raises:
        OpTypeError: the mask is neither bool nor of integers.
        OpError: ``value`` has dims.

    Example:
        >>> flow.tensor([1.0, -2.0, 3.0]).masked_fill(flow.tensor([False, True, False]), 0.0)
        tensor([1., 0., 3.])
    """
    if category(mask.dtype) > 1:
        rule = "the mask is bool, or of integers"
        fail("type", "masked_fill", f"a mask of dtype {mask.dtype}", rule, "mask.bool()")
    mask = cast(mask, BOOL)
    if np.ndim(value):
        fail("shape", "masked_fill", f"a value of shape {np.shape(value)}", "the value has 0 dims", "use where")
    shape = joint_shape(x.shape, mask.shape)
    return lax.select_n(broadcast_to(mask, shape), broadcast_to(x, shape), broadcast_to(cast(value, x.dtype), shape))


def masked_scatter(x, mask, source, /):
    """Return x with the elements of ``source``, in order, at the places where the mask holds."""
    if np.dtype(mask.dtype) != BOOL:
        fail("type", "masked_scatter", f"a mask of dtype {mask.dtype}", "the mask is bool", "mask.bool()")
    same_dtype("masked_scatter", x, source)
    shape = joint_shape(x.shape, mask.shape)
    x, mask = broadcast_to(x, shape), broadcast_to(mask, shape)
    order = lax.cumsum(cast(lax.reshape(mask, (x.size,)), np.int64), 0)
    taken = take_rows(lax.reshape(source, (source.size,)), lax.sub(order, np.int64(1)), 0)
    return lax.select_n(mask, x, lax.reshape(taken, shape))
