"""Conversion of matmuls, convolutions and window reductions to ONNX.

A product becomes ``MatMul`` on operands whose dims are, in order, those of the batch, those that only one of them has,
and those that are summed over. Where each has one of the last two kinds nothing has to be reshaped, so that engines
recognize ``x @ w.T`` and the two products of an attention.
"""

from __future__ import annotations

import math

import numpy as np
from jax.extend.mlir import ir
from jax.extend.mlir.dialects import stablehlo

from sbpjax._core.ops.conv.primitive import COMPOSITE

from .reductions import reducer
from .shapes import _pad_interior
from .values import UnsupportedError, Value, Walk, facts, number, numbers, rule


@rule("dot_general")
def dot(walk: Walk, op, operands):
    """Convert a contraction over dims of both operands, with batch dims."""
    how = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    x, y = operands
    kind, shape = facts(op.results[0])
    x_batch, y_batch = list(how.lhs_batching_dimensions), list(how.rhs_batching_dimensions)
    x_sum, y_sum = list(how.lhs_contracting_dimensions), list(how.rhs_contracting_dimensions)
    x_own = [d for d in range(len(x.shape)) if d not in (*x_batch, *x_sum)]
    y_own = [d for d in range(len(y.shape)) if d not in (*y_batch, *y_sum)]
    left = _order_dims(walk, x, x_batch, x_own, x_sum, keep=not x_batch)
    right = _order_dims(walk, y, y_batch, y_sum, y_own)
    if x.kind != kind:  # sums in a wider type
        left, right = walk.cast(left, kind), walk.cast(right, kind)
    many = (not x_batch and not x_own) or (x_batch and len(x_own) != 1) or len(y_own) != 1
    name = walk.graph.add("MatMul", left, right)
    if many:
        if shape.count(None) > 1:
            raise UnsupportedError(op.name, "of several free sizes")
        name = walk.graph.add("Reshape", name, walk.graph.ints(*(-1 if n is None else n for n in shape)))
    return Value(name, kind, shape, shape)


def _order_dims(walk: Walk, x: Value, batch, first, second, keep: bool = False) -> str:
    """Return a value with its dims as batch, one, one; those of the middle stay apart if `keep` and there are any."""
    order = [*batch, *first, *second]
    name = walk.full(x)
    if order != list(range(len(order))):
        name = walk.graph.add("Transpose", name, perm=order)
    middle = [x.shape[d] for d in first]
    if len(second) == 1 and (len(first) == 1 or (keep and first)):
        return name
    sizes: list[int | None] = [x.shape[d] for d in batch]
    sizes += middle if keep and middle else [_product(middle)]
    sizes.append(_product([x.shape[d] for d in second]))
    if sizes.count(None) > 1:
        raise UnsupportedError("stablehlo.dot_general", "of several free sizes")
    return walk.graph.add("Reshape", name, walk.graph.ints(*(-1 if n is None else n for n in sizes)))


def _product(sizes) -> int | None:
    return None if None in sizes else math.prod(sizes)


@rule("convolution")
def convolution(walk: Walk, op, operands):
    """Convert a convolution in any order of dims; with a dilated input it is a transposed one."""
    how = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    kind, shape = facts(op.results[0])
    x, w = operands
    space = len(shape) - 2
    text = op.attributes

    def whole(name: str, default: int) -> list[int]:
        return numbers(text[name]) if name in text else [default] * space

    if number(text["batch_group_count"]) != 1:
        raise UnsupportedError(op.name, "of groups of the batch")
    if "window_reversal" in text and any(bool(n) for n in text["window_reversal"]):  # type: ignore[attr-defined]
        raise UnsupportedError(op.name, "with a reversed window")
    padding = np.array(_pairs(text["padding"]) if "padding" in text else np.zeros((space, 2), int)).reshape(space, 2)
    left = _move_dims(walk, x, [how.input_batch_dimension, how.input_feature_dimension, *how.input_spatial_dimensions])
    order = [how.kernel_output_feature_dimension, how.kernel_input_feature_dimension, *how.kernel_spatial_dimensions]
    right = _move_dims(walk, w, order)
    spread = whole("lhs_dilation", 1)
    if any(n != 1 for n in spread):
        sizes = [
            x.shape[d] for d in (how.input_batch_dimension, how.input_feature_dimension, *how.input_spatial_dimensions)
        ]
        moved = Value(left, x.kind, tuple(sizes), tuple(sizes))
        zero = Value(walk.zero(x.kind), x.kind, (), ())
        left = _pad_interior(walk, left, moved, zero, [0, 0, *(n - 1 for n in spread)])
    if (padding < 0).any():
        cut = np.minimum(padding, 0)
        last = np.iinfo(np.int64).max
        ends = [int(b) if b < 0 else last for b in cut[:, 1]]
        axes = walk.graph.ints(*range(2, 2 + space))
        left = walk.graph.add("Slice", left, walk.graph.ints(*(-cut[:, 0]).tolist()), walk.graph.ints(*ends), axes)
        padding = np.maximum(padding, 0)
    name = walk.graph.add(
        "Conv",
        left,
        right,
        strides=whole("window_strides", 1),
        dilations=whole("rhs_dilation", 1),
        pads=[*padding[:, 0].tolist(), *padding[:, 1].tolist()],
        group=number(text["feature_group_count"]),
    )
    made = [how.output_batch_dimension, how.output_feature_dimension, *how.output_spatial_dimensions]
    if made != list(range(len(made))):
        name = walk.graph.add("Transpose", name, perm=[int(i) for i in np.argsort(made)])
    return Value(name, kind, shape, shape)


@rule(COMPOSITE)
def composed_convolution(walk: Walk, op, operands):
    """Convert a composite convolution, whose body is another form of it."""
    kind, shape = facts(op.results[0])
    how = ir.DictAttr(op.attributes["composite_attributes"])
    strides, dilation = (_pairs(how[name]).ravel().tolist() for name in ("strides", "dilation"))
    padding, groups = _pairs(how["padding"]), int(_pairs(how["groups"]))
    x, w = (walk.full(value) for value in operands)
    pads = [*padding[:, 0].tolist(), *padding[:, 1].tolist()]
    name = walk.graph.add("Conv", x, w, strides=strides, dilations=dilation, pads=pads, group=groups)
    return Value(name, kind, shape, shape)


def _pairs(attribute) -> np.ndarray:
    dense = ir.DenseElementsAttr(attribute)
    if dense.is_splat:
        return np.full(ir.RankedTensorType(dense.type).shape, ir.IntegerAttr(dense.get_splat_value()).value)
    return np.array(ir.DenseIntElementsAttr(attribute))


def _move_dims(walk: Walk, x: Value, order) -> str:
    name, order = walk.full(x), list(order)
    return name if order == list(range(len(order))) else walk.graph.add("Transpose", name, perm=order)


@rule("reduce_window")
def windows(walk: Walk, op, operands):
    """Convert a maximum or sum of windows: a pooling, or a running sum."""
    if len(operands) != 2:
        raise UnsupportedError(op.name, "of several values")
    x, start = operands
    kind, shape = facts(op.results[0])
    how, text, rank = reducer(op), op.attributes, len(shape)
    sizes = numbers(text["window_dimensions"])
    steps = numbers(text["window_strides"]) if "window_strides" in text else [1] * rank
    holes = numbers(text["window_dilations"]) if "window_dilations" in text else [1] * rank
    pads = _pairs(text["padding"]).reshape(rank, 2) if "padding" in text else np.zeros((rank, 2), int)
    wide = [d for d in range(rank) if sizes[d] != 1]
    if how == "add" and len(wide) == 1 and _is_running(x.shape, wide[0], sizes, steps, holes, pads):
        back = pads[wide[0]][0] == 0
        axis = walk.graph.constant(np.int64(wide[0]))
        return walk.value_like(walk.graph.add("CumSum", walk.full(x), axis, reverse=int(back)), op.results[0])
    if how not in ("maximum", "add") or not wide or not kind.startswith(("f", "bf")):
        raise UnsupportedError(op.name, f"by {how}, of {kind}")
    name = walk.full(x)
    front = [d for d in range(rank) if d not in wide and (steps[d], *pads[d]) == (1, 0, 0)]
    if len(front) < rank - len(wide) or len(wide) > 3:
        raise UnsupportedError(op.name, "of such windows")
    order = [*front, *wide]
    # Pooling takes (N, C, …): the dims that have no window are one or two, or made to be.
    if order != list(range(rank)):
        name = walk.graph.add("Transpose", name, perm=order)
    inner = [x.shape[d] for d in wide]
    if len(front) != 2:
        if None in inner:
            raise UnsupportedError(op.name, "over a free size")
        name = walk.graph.add("Reshape", name, walk.graph.ints(-1, 1, *inner))  # type: ignore[arg-type]
    common = {
        "kernel_shape": [sizes[d] for d in wide],
        "strides": [steps[d] for d in wide],
        "pads": [*(int(pads[d][0]) for d in wide), *(int(pads[d][1]) for d in wide)],
    }
    if how == "maximum":
        name = walk.graph.add("MaxPool", name, dilations=[holes[d] for d in wide], **common)
    else:
        if any(holes[d] != 1 for d in wide):
            raise UnsupportedError(op.name, "of sums over windows with holes")
        name = walk.graph.add("AveragePool", name, count_include_pad=1, **common)
        name = walk.graph.add("Mul", name, walk.zero(kind, math.prod(sizes[d] for d in wide)))
    made = [shape[d] for d in order]
    if len(front) != 2:
        name = walk.graph.add("Reshape", name, walk.graph.ints(*(-1 if n is None else n for n in made)))
    if order != list(range(rank)):
        name = walk.graph.add("Transpose", name, perm=[int(i) for i in np.argsort(order)])
    return Value(name, kind, shape, shape)


def _is_running(shape, dim: int, sizes, steps, holes, pads) -> bool:
    """Return whether the windows are all elements before each element, or after it."""
    n = shape[dim]
    return n == sizes[dim] and steps[dim] == holes[dim] == 1 and sorted(pads[dim]) == [0, n - 1]
