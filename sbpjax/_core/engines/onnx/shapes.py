"""Conversion of shape operations to ONNX: broadcast, reshape, transpose, slice, pad, dynamic sizes.

A program with a free size computes shapes as vectors of numbers. Where a result has one free size only, ONNX's ``-1``
is equivalent, and the engine need not compute anything.
"""

from __future__ import annotations

import numpy as np

from .pooling import Part
from .values import FOLDED, UnsupportedError, Value, Walk, _numpy, facts, number, numbers, rule


@rule("broadcast_in_dim", "dynamic_broadcast_in_dim")
def broadcast(walk: Walk, op, operands):
    """Convert a broadcast to new dims of size 1; repeated values stay small until needed whole."""
    x = operands[0]
    kind, shape = facts(op.results[0])
    dims = numbers(op.attributes["broadcast_dimensions"])
    name, actual = x.name, x.actual
    if dims != sorted(dims):
        order = [int(i) for i in np.argsort(dims)]
        name, actual = walk.graph.add("Transpose", name, perm=order), tuple(actual[i] for i in order)
        dims = sorted(dims)
    new = tuple(d for d in range(len(shape)) if d not in dims)
    if new:
        name = _with_dims(walk, name, new)
    sizes: list[int | None] = [1] * len(shape)
    for dim, size, stated in zip(
        dims, actual, (x.shape[i] for i in np.argsort(numbers(op.attributes["broadcast_dimensions"])))
    ):
        sizes[dim] = shape[dim] if size != 1 or stated != 1 else 1
        if size == 1:
            sizes[dim] = 1
    target = None
    if tuple(sizes) != shape:
        target = _lengths(walk, operands[1]) if len(operands) > 1 else None
    return Value(name, kind, shape, tuple(sizes), target)


def _with_dims(walk: Walk, name: str, new: tuple[int, ...]) -> str:
    kept = walk.kept.get(name)
    if kept is not None and kept[1] == new:
        return kept[0]
    value = walk.known.get(name)
    if value is not None and value.size <= FOLDED:
        return walk.constant(np.expand_dims(value, new)).name
    return walk.graph.add("Unsqueeze", name, walk.graph.ints(*new))


def _lengths(walk: Walk, sizes: Value) -> str:
    name = walk.full(sizes)
    return name if sizes.kind == "i64" else walk.cast(name, "i64")


@rule("reshape", "dynamic_reshape")
def reshape(walk: Walk, op, operands):
    """Convert a reshape; where only dims of size 1 come or go, a small value stays small."""
    x = operands[0]
    kind, shape = facts(op.results[0])
    if x.shape == shape:
        return x
    without = [n for n in x.shape if n != 1]
    if without == [n for n in shape if n != 1] and without.count(None) < 2:
        return _move_unit_dims(walk, x, kind, shape)
    if shape.count(None) < 2:
        target = walk.graph.ints(*(-1 if n is None else n for n in shape))
    else:
        target = _lengths(walk, operands[1])
    return Value(walk.graph.add("Reshape", walk.full(x), target), kind, shape, shape)


def _move_unit_dims(walk: Walk, x: Value, kind: str, shape) -> Value:
    gone = tuple(d for d, n in enumerate(x.shape) if n == 1)
    new = tuple(d for d, n in enumerate(shape) if n == 1)
    name = x.name
    kept = walk.kept.get(name)
    if kept is not None and kept[1] == new and not gone:
        name = kept[0]
    else:
        if gone:
            name = walk.graph.add("Squeeze", name, walk.graph.ints(*gone))
        if new:
            name = _with_dims(walk, name, new)
    rest = iter(n for d, n in enumerate(x.actual) if d not in gone)
    actual = tuple(1 if d in new else next(rest) for d in range(len(shape)))
    if actual != shape and None in shape:
        whole = walk.full(x)
        target = walk.graph.ints(*(-1 if n is None else n for n in shape))
        return Value(walk.graph.add("Reshape", whole, target), kind, shape, shape)
    return Value(name, kind, shape, actual)


@rule("transpose")
def transpose(walk: Walk, op, operands):
    """Convert a transpose."""
    x, order = operands[0], numbers(op.attributes["permutation"])
    if x.target is not None:
        x = walk.broadcast_to_type(x)
    name = walk.graph.add("Transpose", x.name, perm=order)
    return Value(name, x.kind, tuple(x.shape[i] for i in order), tuple(x.actual[i] for i in order))


@rule("concatenate")
def concatenate(walk: Walk, op, operands):
    """Convert a concatenation."""
    if len(operands) == 1:
        return operands[0]
    dim = number(op.attributes["dimension"])
    return walk.value_like(walk.graph.add("Concat", *map(walk.full, operands), axis=dim), op.results[0])


@rule("slice")
def slice_(walk: Walk, op, operands):
    """Convert a slice with strides."""
    bounds = (numbers(op.attributes[key]) for key in ("start_indices", "limit_indices", "strides"))
    return _part(walk, op, operands[0], *bounds)


@rule("real_dynamic_slice")
def real_dynamic_slice(walk: Walk, op, operands):
    """Convert a slice with computed ends, if only of a free size that stays whole."""
    x, *bounds = operands
    starts, ends, steps = (_numbers_of(walk, v.name) for v in bounds)
    free = [d for d, n in enumerate(x.shape) if n is None]
    if starts and ends and steps and all((starts[d], ends[d], steps[d]) == (0, None, 1) for d in free):
        if not any(None in (starts[d], ends[d], steps[d]) for d in range(len(x.shape)) if d not in free):
            return _part(walk, op, x, starts, ends, steps)
    begin, end, step = (_lengths(walk, v) for v in bounds)
    axes = walk.graph.ints(*range(len(x.shape)))
    return walk.value_like(walk.graph.add("Slice", walk.full(x), begin, end, axes, step), op.results[0])


def _part(walk: Walk, op, x: Value, starts, ends, steps) -> Value:
    """Return a part of an array; a dim of a free size stays whole."""
    dims = [d for d, n in enumerate(x.shape) if (starts[d], steps[d]) != (0, 1) or (ends[d] != n and n is not None)]
    if not dims:
        return x
    name = walk.full(x)
    picked = [walk.graph.ints(*(v[d] for d in dims)) for v in (starts, ends)]
    axes, strides = walk.graph.ints(*dims), walk.graph.ints(*(steps[d] for d in dims))
    made = walk.graph.add("Slice", name, *picked, axes, strides)
    if len(dims) == 1:
        walk.parts[made] = Part(name, x.shape, dims[0], starts[dims[0]], steps[dims[0]])
    return walk.value_like(made, op.results[0])


# Operations between a free size and a vector of sizes that leave it unchanged.
_SAME_NUMBER = ("Unsqueeze", "Squeeze", "Cast", "Reshape", "Identity", "Slice", "Gather")


def _numbers_of(walk: Walk, name: str) -> list[int | None] | None:
    """Return the numbers of a vector, with None for the free size itself; None if there are others."""
    known = walk.known.get(name)
    if known is not None:
        return [int(n) for n in known.ravel()]
    if (parts := walk.graph.made_by(name, "Concat")) is None:
        node = walk.graph.makers.get(name)
        while node is not None and node.op in _SAME_NUMBER:
            node = walk.graph.makers.get(node.inputs[0])
        return [None] if node is not None and node.op == "Shape" else None
    found = [_numbers_of(walk, part) for part in parts]
    return None if None in found else [n for part in found for n in part]  # type: ignore[union-attr]


@rule("dynamic_slice")
def dynamic_slice(walk: Walk, op, operands):
    """Convert a slice of given sizes at computed starts, which are clamped to fit."""
    x, *starts = operands
    sizes = numbers(op.attributes["slice_sizes"])
    dims = [d for d, n in enumerate(x.shape) if sizes[d] != n]
    if not dims:
        return x
    begin = _starts(walk, [starts[d] for d in dims], [x.shape[d] for d in dims], [sizes[d] for d in dims])
    end = walk.graph.add("Add", begin, walk.graph.ints(*(sizes[d] for d in dims)))
    return walk.value_like(walk.graph.add("Slice", walk.full(x), begin, end, walk.graph.ints(*dims)), op.results[0])


def _starts(walk: Walk, starts, lengths, sizes) -> str:
    """Return the start of a part, as a vector, within the bounds."""
    if None in lengths:
        raise UnsupportedError("stablehlo.dynamic_slice", "of a free size")
    one = walk.graph.ints(1)
    parts = [walk.graph.add("Reshape", walk.cast(v.name, "i64"), one) for v in starts]
    begin = parts[0] if len(parts) == 1 else walk.graph.add("Concat", *parts, axis=0)
    last = walk.graph.ints(*(n - s for n, s in zip(lengths, sizes)))
    return walk.graph.add("Max", walk.graph.add("Min", begin, last), walk.graph.ints(*[0] * len(sizes)))


@rule("dynamic_update_slice")
def dynamic_update_slice(walk: Walk, op, operands):
    """Convert an update of a part: the rows before, the part, the rows after."""
    x, part, *starts = operands
    dims = [d for d, n in enumerate(x.shape) if part.shape[d] != n]
    if not dims:
        return part
    if len(dims) > 1:
        raise UnsupportedError(op.name, "of a part that is smaller in several dims")
    (dim,) = dims
    begin = _starts(walk, [starts[dim]], [x.shape[dim]], [part.shape[dim]])
    whole, axis = walk.full(x), walk.graph.ints(dim)
    end = walk.graph.add("Add", begin, walk.graph.ints(part.shape[dim]))  # type: ignore[arg-type]
    before = walk.graph.add("Slice", whole, walk.graph.ints(0), begin, axis)
    behind = walk.graph.add("Slice", whole, end, walk.graph.ints(x.shape[dim]), axis)  # type: ignore[arg-type]
    return walk.value_like(walk.graph.add("Concat", before, walk.full(part), behind, axis=dim), op.results[0])


@rule("pad")
def pad(walk: Walk, op, operands):
    """Convert a padding with one number; a negative width removes elements."""
    x, fill = operands
    low, high, inner = (
        numbers(op.attributes[f"{k}"]) for k in ("edge_padding_low", "edge_padding_high", "interior_padding")
    )
    name = walk.full(x)
    if any(inner):
        name = _pad_interior(walk, name, x, fill, inner)
    if any(n > 0 for n in (*low, *high)):
        widths = walk.graph.ints(*(max(n, 0) for n in (*low, *high)))
        if x.kind == "i1":  # engines pad numbers
            number_of = walk.graph.add("Pad", walk.cast(name, "i32"), widths, walk.cast(fill.name, "i32"))
            name = walk.cast(number_of, "i1")
        else:
            name = walk.graph.add("Pad", name, widths, fill.name)
    dims = [d for d in range(len(low)) if low[d] < 0 or high[d] < 0]
    if dims:
        last = np.iinfo(np.int64).max
        starts = walk.graph.ints(*(max(-low[d], 0) for d in dims))
        ends = walk.graph.ints(*(high[d] if high[d] < 0 else last for d in dims))
        name = walk.graph.add("Slice", name, starts, ends, walk.graph.ints(*dims))
    return walk.value_like(name, op.results[0])


def _pad_interior(walk: Walk, name: str, x: Value, fill: Value, inner: list[int]) -> str:
    """Return an array with numbers between its elements: a dim more for them, then joined, without those at the end."""
    if any(n is None for n, k in zip(x.shape, inner) if k):
        raise UnsupportedError("stablehlo.pad", "between the elements of a free size")
    sizes = [-1 if n is None else n for n in x.shape]
    for dim, k in enumerate(inner):
        if not k:
            continue
        rank = len(sizes)
        wide = walk.graph.add("Unsqueeze", name, walk.graph.ints(dim + 1))
        widths = [0] * (2 * rank + 2)
        widths[rank + 1 + dim + 1] = k
        wide = walk.graph.add("Pad", wide, walk.graph.ints(*widths), fill.name)
        sizes[dim] *= k + 1
        wide = walk.graph.add("Reshape", wide, walk.graph.ints(*sizes))
        name = walk.graph.add("Slice", wide, walk.graph.ints(0), walk.graph.ints(sizes[dim] - k), walk.graph.ints(dim))
        sizes[dim] -= k
    return name


@rule("reverse")
def reverse(walk: Walk, op, operands):
    """Convert a reversal of dims."""
    dims = numbers(op.attributes["dimensions"])
    ends = walk.graph.ints(*[np.iinfo(np.int64).min] * len(dims))
    picked = walk.graph.ints(*[-1] * len(dims)), ends, walk.graph.ints(*dims), walk.graph.ints(*[-1] * len(dims))
    return walk.value_like(walk.graph.add("Slice", walk.full(operands[0]), *picked), op.results[0])


@rule("get_dimension_size")
def size_of(walk: Walk, op, operands):
    """Convert the size of a dim to a number."""
    x, dim = operands[0], number(op.attributes["dimension"])
    if x.shape[dim] is not None:
        return walk.constant(np.array(x.shape[dim], np.int32))
    if x.actual[dim] is not None:
        raise UnsupportedError(op.name, "of a value that was not spread yet")
    size = walk.graph.add("Shape", x.name, start=dim, end=dim + 1)
    return walk.value_like(walk.graph.add("Squeeze", walk.cast(size, "i32"), walk.graph.ints(0)), op.results[0])


@rule("dynamic_iota")
def dynamic_iota(walk: Walk, op, operands):
    """Convert an iota of computed sizes."""
    kind, shape = facts(op.results[0])
    dim = number(op.attributes["iota_dimension"])
    sizes = _lengths(walk, operands[0])
    if shape[dim] is None:
        limit = walk.graph.add("Gather", sizes, walk.graph.constant(np.int64(dim)), axis=0)
        name = walk.graph.add("Range", walk.zero("i64"), limit, walk.zero("i64", 1))
        name = walk.cast(name, kind)
    else:
        name = walk.constant(np.arange(shape[dim]).astype(_numpy(kind))).name
    new = tuple(d for d in range(len(shape)) if d != dim)
    if new:
        name = walk.graph.add("Unsqueeze", name, walk.graph.ints(*new))
    actual = tuple(n if d == dim else 1 for d, n in enumerate(shape))
    return Value(name, kind, shape, actual, None if actual == shape else sizes)


@rule("dynamic_pad")
def pad_dynamic(walk: Walk, op, operands):
    """Convert a padding with computed widths."""
    x, fill, low, high, _ = operands
    widths = walk.graph.add("Concat", _lengths(walk, low), _lengths(walk, high), axis=0)
    return walk.value_like(walk.graph.add("Pad", walk.full(x), widths, fill.name), op.results[0])


@rule("bitcast_convert")
def bitcast_convert(walk: Walk, op, operands):
    """Convert a bitcast to another type."""
    if operands[0].kind == facts(op.results[0])[0]:
        return operands[0]
    raise UnsupportedError(op.name, "ONNX has no view of bits")
