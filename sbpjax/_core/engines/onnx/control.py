"""Conversion of control flow to ONNX: functions, loops, branches, and custom calls.

ONNX's ``Loop`` tests its condition after an iteration, StableHLO's ``while`` before it. So the condition is computed
once in front of the loop, and again at the end of each iteration on the new values.
"""

from __future__ import annotations

from jax.extend.mlir import ir

from .model import Body, Graph, Port
from .reductions import top_k
from .values import UnsupportedError, Value, Walk, facts, rule


@rule("func.call")
def call(walk: Walk, op, operands):
    """Convert a call of a function of the program."""
    return walk.call(ir.FlatSymbolRefAttr(op.attributes["callee"]).value, operands)


@rule("custom_call")
def custom_call(walk: Walk, op, operands):
    """Drop checks of sizes, which the caller did; raise for other custom calls."""
    name = ir.StringAttr(op.attributes["call_target_name"]).value
    if name == "shape_assertion":
        return None
    if name in ("Sharding", "annotate_device_placement"):
        return operands[0]
    if name == "mhlo.erf":
        return walk.elementwise_result(walk.graph.add("Erf", operands[0].name), op.results[0], operands)
    if name == "mhlo.topk":
        return top_k(walk, op, operands)
    raise UnsupportedError(op.name, f"of {name}")


@rule("while")
def loop(walk: Walk, op, operands):
    """Convert a loop that runs while a bool holds."""
    question, turn = (region.blocks[0] for region in op.regions)
    operands = [walk.broadcast_to_type(v) for v in operands]
    first = _convert_block(walk, walk.graph, question, operands)[0]
    graph = Graph(walk.graph)
    before = [Value(graph.fresh("state"), v.kind, v.shape, v.shape) for v in operands]
    inner = _walk(walk, graph)
    for argument, value in zip(turn.arguments, before, strict=True):
        inner.values[argument] = value
    behind = [inner.broadcast_to_type(v) for v in inner.run(turn)]
    # A value that passes unchanged must have a name of its own.
    behind = [Value(graph.add("Identity", v.name), v.kind, v.shape, v.shape) for v in behind]
    again = _convert_block(inner, graph, question, behind)[0]
    ports = [Port(graph.fresh("turn"), "i64", ()), Port(graph.fresh("go"), "i1", ())]
    body = Body(
        graph,
        [*ports, *map(_port, before)],
        [Port(graph.add("Identity", again.name), "i1", ()), *map(_port, behind)],
    )
    inputs = ("", first.name, *(v.name for v in operands))
    names = walk.graph.add_many("Loop", inputs, len(operands), body=body)
    return [Value(n, v.kind, v.shape, v.shape) for n, v in zip(names, operands)]


def _walk(walk: Walk, graph: Graph) -> Walk:
    inner = Walk(graph, walk.functions, walk.values)
    inner.known = walk.known
    return inner


def _convert_block(walk: Walk, graph: Graph, block, operands) -> list[Value]:
    inner = _walk(walk, graph)
    for argument, value in zip(block.arguments, operands, strict=True):
        inner.values[argument] = value
    return [inner.broadcast_to_type(v) for v in inner.run(block)]


def _port(value: Value) -> Port:
    return Port(value.name, value.kind, tuple(f"d{i}" if n is None else n for i, n in enumerate(value.shape)))


@rule("case", "if")
def branch(walk: Walk, op, operands):
    """Convert a choice of blocks by a number, or of the first of two by a bool."""
    results = [facts(r) for r in op.results]
    if op.name == "stablehlo.if":
        condition, blocks = operands[0].name, list(op.regions)
    else:
        blocks = list(op.regions)[::-1]
        condition = ""
    if condition:
        return _if(walk, condition, blocks[0], blocks[1], results)
    at, regions = operands[0], list(op.regions)
    return _cases(walk, at, regions, 0, results)


def _cases(walk: Walk, at: Value, regions, first: int, results):
    """Return the results of a chain of conditions; a number out of bounds means the last block."""
    if first == len(regions) - 1:
        return _convert_block(walk, walk.graph, regions[first].blocks[0], [])
    condition = walk.graph.add("Equal", at.name, walk.zero(at.kind, first))
    graphs = [Graph(walk.graph), Graph(walk.graph)]
    then = _convert_block(_walk(walk, graphs[0]), graphs[0], regions[first].blocks[0], [])
    rest = _cases(_walk(walk, graphs[1]), at, regions, first + 1, results)
    return _join_graphs(walk, condition, graphs, [then, rest], results)


def _if(walk: Walk, condition: str, yes, no, results):
    graphs = [Graph(walk.graph), Graph(walk.graph)]
    found = [_convert_block(_walk(walk, g), g, region.blocks[0], []) for g, region in zip(graphs, (yes, no))]
    return _join_graphs(walk, condition, graphs, found, results)


def _join_graphs(walk: Walk, condition: str, graphs, found, results):
    bodies = []
    for graph, values in zip(graphs, found):
        own = [Value(graph.add("Identity", v.name), v.kind, v.shape, v.shape) for v in values]
        bodies.append(Body(graph, [], [_port(v) for v in own]))
    names = walk.graph.add_many("If", (condition,), len(results), then_branch=bodies[0], else_branch=bodies[1])
    return [Value(n, kind, shape, shape) for n, (kind, shape) in zip(names, results)]


@rule("rng_bit_generator", "rng")
def random(walk: Walk, op, operands):
    """Raise: ONNX has no generator with the same numbers on every engine."""
    raise UnsupportedError(op.name, "random numbers are drawn by JAX")
