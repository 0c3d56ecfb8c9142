"""Conversion of reductions, argmax, top-k and sort to ONNX."""

from __future__ import annotations

import math

import numpy as np
from jax.extend.mlir import ir

from sbpjax._core.ops.conv.primitive import COMPOSITE

from .values import RULES, UnsupportedError, Value, Walk, _numpy, facts, number, numbers, rule

_NODES = {"add": "ReduceSum", "maximum": "ReduceMax", "minimum": "ReduceMin", "multiply": "ReduceProd"}


def reducer(op) -> str:
    """Return the operation by which a reduction joins two elements: the only one of its body."""
    names = [inner.operation.name.removeprefix("stablehlo.") for inner in op.regions[0].blocks[0].operations]
    return names[0] if len(names) == 2 else ""


@rule("reduce")
def reduce(walk: Walk, op, operands):
    """Convert a reduction; the form with dims of size 1 is kept for later broadcasts."""
    axes = tuple(numbers(op.attributes["dimensions"]))
    if len(operands) == 4:
        return _arg_reduction(walk, op, operands, axes)
    if len(operands) != 2:
        raise UnsupportedError(op.name, "of several values")
    x, start = operands
    how = reducer(op)
    kind, shape = facts(op.results[0])
    if kind == "i1":
        how = {"and": "minimum", "or": "maximum"}.get(how, how)
    if how not in _NODES:
        raise UnsupportedError(op.name, f"by {how or 'several operations'}")
    if not axes:
        return x
    source = walk.full(x)
    name = walk.cast(source, "i32") if kind == "i1" else source
    kept = walk.graph.add(_NODES[how], name, walk.graph.ints(*axes), keepdims=1)
    if kind == "i1":
        kept = walk.cast(kept, "i1")
    made = walk.graph.add("Squeeze", kept, walk.graph.ints(*axes))
    walk.kept[made] = kept, axes
    first = walk.known.get(start.name)
    neutral = _neutral(how, kind)
    if first is None or first.size != 1 or first.reshape(()) != neutral:
        if how == "maximum" and first is not None and kind != "i1" and first.reshape(()) <= neutral:
            pass
        else:
            join = {"add": "Add", "maximum": "Max", "minimum": "Min", "multiply": "Mul"}[how]
            if kind == "i1":
                join = {"maximum": "Or", "minimum": "And"}[how]
            return Value(walk.graph.add(join, made, start.name), kind, shape, shape)
    elif how == "add":
        sizes = [x.shape[d] for d in axes]
        walk.sums[made] = source, axes, None if None in sizes else math.prod(sizes)  # type: ignore[arg-type]
    return Value(made, kind, shape, shape)


def _neutral(how: str, kind: str):
    """Return the neutral element."""
    if how in ("add", "multiply"):
        return int(how == "multiply")
    if kind == "i1":
        return how == "minimum"
    dtype = _numpy(kind)
    if np.issubdtype(dtype, np.integer):
        return np.iinfo(dtype).min if how == "maximum" else np.iinfo(dtype).max
    return -math.inf if how == "maximum" else math.inf


def _arg_reduction(walk: Walk, op, operands, axes):
    """Convert an argmax or argmin: values and their indices, reduced by comparing the values."""
    x, places = operands[:2]
    orders = [
        str(inner.operation.attributes["comparison_direction"])
        for inner in op.regions[0].blocks[0].operations
        if inner.operation.name == "stablehlo.compare"
    ]
    largest = any("GT" in o or "GE" in o for o in orders)
    smallest = any("LT" in o or "LE" in o for o in orders[:1])
    if len(axes) != 1 or largest == smallest:
        raise UnsupportedError(op.name, "of several values")
    kind, shape = facts(op.results[1])
    source = walk.full(x)
    node = "Max" if largest else "Min"
    if x.kind == "i1":
        source = walk.cast(source, "i32")
    found = walk.graph.add(f"Arg{node}", source, axis=axes[0], keepdims=0)
    best = walk.graph.add(f"Reduce{node}", source, walk.graph.ints(*axes), keepdims=0)
    if x.kind == "i1":
        best = walk.cast(best, "i1")
    return [Value(best, x.kind, shape, shape), Value(walk.cast(found, kind), kind, shape, shape)]


@rule("stablehlo.composite")
def composite(walk: Walk, op, operands):
    """Convert a composite operation: by its name if it has a rule, else by its body."""
    name = ir.StringAttr(op.attributes["name"]).value
    if name == "chlo.erf":
        return walk.elementwise_result(walk.graph.add("Erf", operands[0].name), op.results[0], operands)
    if name == "chlo.square":
        return walk.elementwise_result(
            walk.graph.add("Mul", operands[0].name, operands[0].name), op.results[0], operands
        )
    if name in ("chlo.top_k", COMPOSITE):
        return RULES[name](walk, op, operands)
    return walk.call(ir.FlatSymbolRefAttr(op.attributes["decomposition"]).value, operands)


@rule("chlo.top_k")
def top_k(walk: Walk, op, operands):
    """Convert a top-k of the last dim: values in descending order, and their indices."""
    kind, shape = facts(op.results[0])
    count = walk.graph.ints(shape[-1])  # type: ignore[arg-type]
    values, places = walk.graph.add_many("TopK", (walk.full(operands[0]), count), 2, axis=len(shape) - 1)
    return [Value(values, kind, shape, shape), Value(walk.cast(places, "i32"), "i32", shape, shape)]


@rule("sort")
def sort(walk: Walk, op, operands):
    """Convert a sort of one array, or of one and others in its order, by the last comparison of its body."""
    orders = [
        str(inner.operation.attributes["comparison_direction"])
        for inner in op.regions[0].blocks[0].operations
        if inner.operation.name == "stablehlo.compare"
    ]
    directions = {o.split()[-1].rstrip(">") for o in orders} & {"LT", "GT", "LE", "GE"}
    last = [o.split()[-1].rstrip(">") for o in orders][-1:] if orders else []
    if not directions or len(operands) > 2:
        raise UnsupportedError(op.name, "of several keys")
    dim = number(op.attributes["dimension"])
    kind, shape = facts(op.results[0])
    if shape[dim] is None:
        raise UnsupportedError(op.name, "along a free size")
    keys = walk.full(operands[0])
    wide = walk.cast(keys, "i32") if kind in ("i1", "i8", "ui8", "i16", "ui16") else keys
    largest = last[0] in ("GT", "GE")
    values, places = walk.graph.add_many("TopK", (wide, walk.graph.ints(shape[dim])), 2, axis=dim, largest=int(largest))
    found = [Value(walk.cast(values, kind) if wide != keys else values, kind, shape, shape)]
    for v in operands[1:]:
        found.append(Value(walk.graph.add("GatherElements", walk.full(v), places, axis=dim), v.kind, shape, shape))
    return found
