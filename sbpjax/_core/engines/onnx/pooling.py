"""Pattern matching of max pooling written as maxima of strided slices.

    where(b > a, b, a), a = x[..., 0::2], b = x[..., 1::2]          MaxPool(x), windows of 2 every 2
    ... of the result's rows the same way                            MaxPool(x), windows of 2 × 2

`_core.ops.conv.pool` goes through the dims one by one, and checks whether a value is NaN, which wins. Each step that
fits makes a pooling of the windows so far; those that nothing reads are left out of the model.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .values import Shape, Value, Walk


@dataclass(frozen=True)
class Part:
    """A strided slice of one dim: ``x[..., start : end : step, ...]``.

    Attributes:
        source: the name of the array.
        shape: its sizes.
        dim: the dim.
        start: the first element.
        step: from one to the next.
        count: the number of parts that it is the maximum of, each `hole` after the one before.
        hole: see `count`; 0 if it is one.
    """

    source: str
    shape: Shape
    dim: int
    start: int
    step: int
    count: int = 1
    hole: int = 0


def match_pooling(walk: Walk, mask: Value, value: Value, best: Value) -> str | None:
    """Return the pooling that ``where(mask, value, best)`` is, or a part of it; None if it is none."""
    if value.shape != best.shape or not _is_larger(walk, mask.name, value.name, best.name):
        return None
    before, this = walk.parts.get(best.name), walk.parts.get(value.name)
    if before is None or this is None or before.start != 0 or this.count != 1:
        return None
    hole = before.hole or this.start
    if (this.source, this.dim, this.step) != (before.source, before.dim, before.step):
        return None
    if hole < 1 or this.start != before.count * hole or this.dim < 2 or len(this.shape) > 5:
        return None
    found = replace(before, count=before.count + 1, hole=hole)
    length, covered = found.shape[found.dim], hole * (found.count - 1) + 1
    if length is None:
        return None
    # Before the last part of a window is found, there are more windows than results.
    is_whole = (length - covered) // found.step + 1 == value.shape[found.dim]
    name = _pool(walk, found) if is_whole else walk.graph.add("Where", mask.name, value.name, best.name)
    walk.parts[name] = found
    return name


def _is_larger(walk: Walk, mask: str, value: str, best: str) -> bool:
    """Return whether a mask is true where one value is above another, or NaN."""
    either = walk.graph.made_by(mask, "Or")
    wrong = either and walk.graph.made_by(either[1], "Not")
    if not either or not wrong or walk.graph.made_by(wrong[0], "Equal") != (value, value):
        return False
    return walk.graph.made_by(either[0], "Greater") == (value, best)


def _pool(walk: Walk, part: Part) -> str:
    """Return a pooling along one dim, in one with the pooling and the border that it reads."""
    rank, place = len(part.shape), part.dim - 2
    source, border = _without_border(walk, part)
    how = {"kernel_shape": [1] * (rank - 2), "strides": [1] * (rank - 2), "dilations": [1] * (rank - 2)}
    pads = [0] * (2 * (rank - 2))
    inner = walk.graph.makers.get(source)
    if inner is not None and inner.op == "MaxPool" and inner.attributes["kernel_shape"][place] == 1:
        source = inner.inputs[0]
        how = {key: list(inner.attributes[key]) for key in how}
        pads = list(inner.attributes["pads"])
    for key, number in zip(how, (part.count, part.step, part.hole)):
        how[key][place] = number
    pads[place], pads[place + rank - 2] = border
    return walk.graph.add("MaxPool", source, pads=pads, **how)


def _without_border(walk: Walk, part: Part) -> tuple[str, tuple[int, int]]:
    """Return the source of a part without a border of -inf along its dim, and the border's widths."""
    padded = walk.graph.made_by(part.source, "Pad")
    widths = padded and walk.graph.constants.get(padded[1])  # those of a dynamic pad are computed
    if not padded or widths is None or np.any(walk.known.get(padded[2], np.zeros(1)) != -np.inf):
        return part.source, (0, 0)
    front, back = (int(widths[d]) for d in (part.dim, part.dim + len(part.shape)))
    if widths.sum() != front + back or max(front, back) >= part.count:
        return part.source, (0, 0)
    return padded[0], (front, back)
