"""Conversion of gathers and scatters to ONNX's ``GatherND`` and ``ScatterND``.

StableHLO's gather reads a window at each index. Where the windows are one element thick in the dims that are indexed
and whole in the others, as in ``x[i]``, embeddings, ``take`` and ``gather``, it is ``GatherND`` on the array with those
dims in front.
"""

from __future__ import annotations

import numpy as np
import onnx
from jax.extend.mlir.dialects import stablehlo

from .reductions import reducer
from .values import UnsupportedError, Value, Walk, facts, numbers, rule


@rule("gather", "dynamic_gather")
def gather(walk: Walk, op, operands):
    """Convert a gather of windows at computed places, which are clamped into the bounds."""
    how = stablehlo.GatherDimensionNumbers(op.attributes["dimension_numbers"])
    x, at = operands[:2]
    if op.name.endswith("dynamic_gather"):
        stated = walk.known.get(operands[2].name)
        if stated is None:
            sizes = _whole_windows(how, x)
        else:
            sizes = [int(n) for n in stated]
    else:
        sizes = numbers(op.attributes["slice_sizes"])
    kind, shape = facts(op.results[0])
    named, gone = list(how.start_index_map), list(how.collapsed_slice_dims)
    batch, at_batch = list(how.operand_batching_dims), list(how.start_indices_batching_dims)
    rest = [d for d in range(len(x.shape)) if d not in (*named, *batch)]
    if any(sizes[d] != 1 for d in named):
        return _windows(walk, op, x, at, sizes, how)
    if any(sizes[d] not in (x.shape[d], None) for d in rest):
        raise UnsupportedError(op.name, "of parts of dims that are not indexed")
    inner = [d for d in (*named, *rest) if d not in gone]  # dims of the window that stay, in their later order
    indices, lead = _indices(walk, at, how.index_vector_dim, at_batch)
    indices = _clamp_indices(walk, indices, [x.shape[d] for d in named], x, named)
    array = walk.full(x)
    if len(named) == 1 and not batch:
        # One dim: engines know it as a look-up.
        flat = walk.graph.add("Squeeze", indices, walk.graph.ints(-1)) if lead >= 0 else indices
        name = walk.graph.add("Gather", array, flat, axis=named[0])
        before = named[0]
        order = [
            *range(before, before + lead),
            *range(before),
            *range(before + lead, before + lead + len(rest) - before),
        ]
        name = _transpose(walk, name, order)
    else:
        order = [*batch, *named, *rest]
        name = walk.graph.add("GatherND", _transpose(walk, array, order), indices, batch_dims=len(batch))
    stay = [d for d in named if d not in gone]  # size 1, in the window
    if stay:
        name = walk.graph.add("Unsqueeze", name, walk.graph.ints(*range(lead, lead + len(stay))))
    # Now: dims of the indices (those of the batch in front), then those of the window, indexed ones first.
    places = list(how.offset_dims)
    of_indices = [d for d in range(len(shape)) if d not in places]
    window = sorted(inner)
    order = [0] * len(shape)
    in_front = [*at_batch, *(i for i in range(lead) if i not in at_batch)]
    for position, dim in enumerate(of_indices):
        order[dim] = in_front.index(position)
    for position, dim in enumerate(places):
        order[dim] = lead + inner.index(window[position])
    return Value(_transpose(walk, name, order), kind, shape, shape)


def _whole_windows(how, x: Value) -> list:
    named = list(how.start_index_map)
    return [1 if d in named or d in list(how.operand_batching_dims) else n for d, n in enumerate(x.shape)]


def _transpose(walk: Walk, name: str, order) -> str:
    return name if list(order) == list(range(len(order))) else walk.graph.add("Transpose", name, perm=list(order))


def _indices(walk: Walk, at: Value, dim: int, batch: list[int]) -> tuple[str, int]:
    """Return indices as int64, index vectors in the last dim and batch dims in front; and the number of dims."""
    name, rank = walk.full(at), len(at.shape)
    if dim == rank:
        name = walk.graph.add("Unsqueeze", name, walk.graph.ints(rank))
        rank += 1
    others = [d for d in range(rank) if d != dim]
    order = [*(others[i] for i in batch), *(d for i, d in enumerate(others) if i not in batch), dim]
    name = _transpose(walk, name, order)
    return (name if at.kind == "i64" else walk.cast(name, "i64")), rank - 1


def _clamp_indices(walk: Walk, indices: str, sizes, x: Value, named) -> str:
    if None in sizes:
        lengths = [
            walk.graph.ints(n) if n is not None else walk.graph.add("Shape", walk.full(x), start=d, end=d + 1)
            for n, d in zip(sizes, named)
        ]
        joint = lengths[0] if len(lengths) == 1 else walk.graph.add("Concat", *lengths, axis=0)
        last = walk.graph.add("Sub", joint, walk.graph.ints(1))
    else:
        last = walk.graph.ints(*(n - 1 for n in sizes))
    return walk.graph.add("Max", walk.graph.add("Min", indices, last), walk.graph.ints(*[0] * len(sizes)))


def _windows(walk: Walk, op, x: Value, at: Value, sizes, how):
    """Convert a gather of one window that is thicker than an element: a slice."""
    kind, shape = facts(op.results[0])
    named, gone = list(how.start_index_map), list(how.collapsed_slice_dims)
    lead = [n for d, n in enumerate(at.shape) if d != how.index_vector_dim]
    if any(n != 1 for n in lead) or list(how.operand_batching_dims) or None in [x.shape[d] for d in named]:
        raise UnsupportedError(op.name, "of several windows")
    if any(sizes[d] != n for d, n in enumerate(x.shape) if d not in named):
        raise UnsupportedError(op.name, "of parts of dims that are not indexed")
    flat = walk.graph.add("Reshape", walk.full(at), walk.graph.ints(len(named)))
    begin = flat if at.kind == "i64" else walk.cast(flat, "i64")
    last = walk.graph.ints(*(x.shape[d] - sizes[d] for d in named))
    begin = walk.graph.add("Max", walk.graph.add("Min", begin, last), walk.graph.ints(*[0] * len(named)))
    end = walk.graph.add("Add", begin, walk.graph.ints(*(sizes[d] for d in named)))
    name = walk.graph.add("Slice", walk.full(x), begin, end, walk.graph.ints(*named))
    if gone:
        name = walk.graph.add("Squeeze", name, walk.graph.ints(*gone))
    new = [d for d in range(len(shape)) if d not in list(how.offset_dims)]
    if new:
        name = walk.graph.add("Unsqueeze", name, walk.graph.ints(*new))
    return Value(name, kind, shape, shape)


@rule("scatter")
def scatter(walk: Walk, op, operands):
    """Convert a scatter that writes or adds rows at computed places; rows out of bounds are dropped."""
    if len(operands) != 3:
        raise UnsupportedError(op.name, "of several arrays")
    how = stablehlo.ScatterDimensionNumbers(op.attributes["scatter_dimension_numbers"])
    x, at, new = operands
    named = list(how.scattered_dims_to_operand_dims)
    batch = list(how.input_batching_dims)
    window, gone = list(how.update_window_dims), list(how.inserted_window_dims)
    join = _scatter_reduction(op)
    rest = [d for d in range(len(x.shape)) if d not in (*named, *batch)]
    if batch or any(d not in gone for d in named):
        return _scatter_elements(walk, op, x, at, new, how, join)
    if None in [x.shape[d] for d in named]:
        raise UnsupportedError(op.name, "into a free size")
    kept = sorted(d for d in range(len(x.shape)) if d not in gone)
    if [new.shape[w] for w in window] != [x.shape[d] for d in kept]:
        raise UnsupportedError(op.name, "of parts of dims that are not indexed")
    indices, lead = _indices(walk, at, how.index_vector_dim, [])
    order = [*named, *rest]
    array = _transpose(walk, walk.full(x), order)
    updates = _transpose(walk, walk.full(new), [*(d for d in range(len(new.shape)) if d not in window), *window])
    name = _put(walk, array, indices, updates, [x.shape[d] for d in named], x.kind, join)
    kind, shape = facts(op.results[0])
    return Value(_transpose(walk, name, [int(i) for i in np.argsort(order)]), kind, shape, shape)


def _scatter_reduction(op) -> str:
    names = [inner.operation.name for inner in op.regions[0].blocks[0].operations]
    if len(names) == 1:
        return "none"
    how = {"add": "add", "multiply": "mul", "maximum": "max", "minimum": "min"}.get(reducer(op))
    if how is None:
        raise UnsupportedError(op.name, "by such a body")
    return how


def _put(walk: Walk, array: str, indices: str, updates: str, sizes, kind: str, join: str) -> str:
    """Write into a border of one row more, where indices out of bounds go, and cut it off."""
    inside = walk.graph.add("And", walk.graph.add("GreaterOrEqual", indices, walk.zero("i64")),
                            walk.graph.add("Less", indices, walk.graph.ints(*sizes)))  # fmt: skip
    number_of = walk.graph.add("ReduceMin", walk.cast(inside, "i32"), walk.graph.ints(-1), keepdims=1)
    indices = walk.graph.add("Where", walk.cast(number_of, "i1"), indices, walk.graph.ints(*sizes))
    rank = walk.graph.add("Shape", walk.graph.add("Shape", array))
    count = len(sizes)
    ends = walk.graph.add("Concat", walk.graph.constant(np.array([1] * count, np.int64)),
                          walk.graph.add("ConstantOfShape", walk.graph.add("Sub", rank, walk.graph.ints(count)),
                                         value=_int_zero()), axis=0)  # fmt: skip
    begins = walk.graph.add("ConstantOfShape", rank, value=_int_zero())
    widths = walk.graph.add("Concat", begins, ends, axis=0)
    wide = walk.graph.add("Pad", array, widths, walk.zero(kind))
    made = walk.graph.add("ScatterND", wide, indices, updates, reduction=join)
    axes = walk.graph.ints(*range(count))
    return walk.graph.add("Slice", made, walk.graph.ints(*[0] * count), walk.graph.ints(*sizes), axes)


def _int_zero():
    return onnx.helper.make_tensor("", 7, [1], [0])


def _scatter_elements(walk: Walk, op, x: Value, at: Value, new: Value, how, join: str):
    """Return a scatter of single elements along one dim, with all others a batch: ``x.scatter(dim, index, src)``."""
    named, batch = list(how.scattered_dims_to_operand_dims), list(how.input_batching_dims)
    if len(named) != 1 or list(how.update_window_dims) or len(batch) + 1 != len(x.shape):
        raise UnsupportedError(op.name, "of such windows")
    at_batch = list(how.scatter_indices_batching_dims)
    indices, lead = _indices(walk, at, how.index_vector_dim, at_batch)
    size = x.shape[named[0]]
    if size is None or lead != len(x.shape):
        raise UnsupportedError(op.name, "of such indices")
    flat = walk.graph.add("Squeeze", indices, walk.graph.ints(-1))
    order = [*batch, named[0]]
    array = _transpose(walk, walk.full(x), order)
    others = [d for d in range(len(new.shape)) if d not in at_batch]
    updates = _transpose(walk, walk.full(new), [*at_batch, *others])
    inside = walk.graph.add("And", walk.graph.add("GreaterOrEqual", flat, walk.zero("i64")),
                            walk.graph.add("Less", flat, walk.zero("i64", size)))  # fmt: skip
    flat = walk.graph.add("Where", inside, flat, walk.zero("i64", size))
    rank = len(x.shape)
    widths = walk.graph.ints(*[0] * (2 * rank - 1), 1)
    wide = walk.graph.add("Pad", array, widths, walk.zero(x.kind))
    made = walk.graph.add("ScatterElements", wide, flat, updates, axis=rank - 1, reduction=join)
    made = walk.graph.add("Slice", made, walk.graph.ints(0), walk.graph.ints(size), walk.graph.ints(rank - 1))
    kind, shape = facts(op.results[0])
    return Value(_transpose(walk, made, [int(i) for i in np.argsort(order)]), kind, shape, shape)
