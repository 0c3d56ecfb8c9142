"""Pattern matching of groups of operations that ONNX has as one: softmax, masked softmax, ReLU.

    exp(x - max(x)) / sum(exp(x - max(x)))                        Softmax(x)
    where(mask, Softmax(where(mask, x, lowest)), 0)               the same Softmax, if no row is masked as a whole
    where(x <= 0, 0, x)                                           Relu(x), which engines make a part of the op before

The second line is an attention: a row without any key gives zeros. Of a causal mask the rows are known, so that engines
see product, mask, softmax, product, which they fuse.
"""

from __future__ import annotations

import numpy as np

from .values import Value, Walk

_LOWEST = -1e30  # smaller numbers add nothing to a sum of exponentials


def softmax(walk: Walk, above: Value, below: Value) -> str | None:
    """Return the softmax that a quotient is, None if it is none."""
    graph, total = walk.graph, graph_sum(walk, below.name)
    if total is None or total[0] != above.name:
        return None
    difference = graph.made_by(above.name, "Exp")
    parts = difference and graph.made_by(difference[0], "Sub")
    largest = parts and graph.made_by(parts[1], "ReduceMax")
    if not parts or not largest or largest[0] != parts[0] or largest[1] != total[1]:
        return None
    axes = graph.constants[total[1]]
    if axes.size != 1:
        return None
    return graph.add("Softmax", parts[0], axis=int(axes[0]))


def graph_sum(walk: Walk, name: str) -> tuple[str, ...] | None:
    """Return the summed value and the dims, if a value is a sum that keeps its dims."""
    return walk.graph.made_by(name, "ReduceSum")


def is_masked_already(walk: Walk, mask: Value, kept: Value, fill: Value) -> bool:
    """Return whether a softmax is already 0 where a mask does not hold."""
    zero, rows = walk.known.get(fill.name), walk.known.get(mask.name)
    inside = walk.graph.made_by(kept.name, "Softmax")
    masked = inside and walk.graph.made_by(inside[0], "Where")
    if zero is None or rows is None or not masked or masked[0] != mask.name or np.any(zero):
        return False
    lowest = walk.known.get(masked[2])
    return lowest is not None and bool(np.all(lowest < _LOWEST)) and bool(np.all(rows.any(axis=-1)))


def is_relu(walk: Walk, mask: Value, zero: Value, x: Value) -> bool:
    """Return whether ``where(mask, zero, x)`` is x where it is above 0, and 0 elsewhere."""
    compared = walk.graph.made_by(mask.name, "LessOrEqual")
    if not compared or compared[0] != x.name or not x.kind.startswith(("f", "bf")):
        return False
    return all(walk.known.get(name) is not None and not np.any(walk.known[name]) for name in (compared[1], zero.name))
