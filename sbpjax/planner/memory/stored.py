"""What lies in memory before and after a program: who reads an input, and who writes new state.

A step of Adam reads a parameter, its two moments and the gradient, and writes three of them: on TPU that is the memory
traffic of the update, which the pointwise equations between them hide in one loop (`updates`). An input that only
products read is paid for there, or behind their flops; one that is converted, in the conversion. Of ZeRO-1's parameters
on 64 ranks

    read by products, whole           part of the products
    read by the update, a 64th        7.5 of 478 MB: the slice is taken where it is read
    written by the update, a 64th     7.5 MB; the gather behind it writes the whole

An input that lies in a block of up to 16 MiB is brought into the chip's fast memory ahead of its reader, which
libtpu's compiler counts as four times its bytes: of such inputs of 16 programs of a GPT it fetched 65 to 137 %, 100 %
on average; so it does with what is gathered for a product. Of their results it took 0 to 100 % the same way back,
mostly few; that is left out. New state that is gathered is copied from the gather's result into the place of the old
one; an all-reduce writes it there at once.

Only models whose memory is read in tiles (`CostModel.tiles`) are priced so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from sbpjax.planner.graph import Fixed, Graph, Value
from sbpjax.planner.prices.local_work import is_divided
from sbpjax.programs.plan import Codes
from sbpjax.sbp.layout import local_shape

_FAST_BYTES = 16 * 2**20
_FETCHED = 4.0


@dataclass(frozen=True)
class Touch:
    """An operand or a result of a node that lies in memory before or after the program.

    Attributes:
        is_read: whether it is an operand.
        position: which.
        value: the value.
        times: how often per member of the node.
    """

    is_read: bool
    position: int
    value: Value
    times: float

    def bytes(self, chosen, sizes: Codes) -> float:
        """Return the bytes of memory that this costs one device under rows chosen for axes of ``sizes``."""
        codes = tuple((row.ins if self.is_read else row.outs)[self.position] for row in chosen)
        return self.times * math.prod(local_shape(self.value.shape, codes, sizes)) * self.value.itemsize


def fetched_bytes(block: float) -> float:
    """Return what it costs in bytes of memory to bring a block of an input into the chip's fast memory."""
    return _FETCHED * block if block <= _FAST_BYTES else 0.0


def fetched_of_given(graph: Graph, sizes: Codes) -> float:
    """Return what that costs for all inputs whose layout is given."""
    total = 0.0
    for value, count in graph.values.items():
        if isinstance(value.source, Fixed):
            block = math.prod(local_shape(value.shape, value.source.codes, sizes)) * value.itemsize
            total += count * fetched_bytes(block)
    return total


def written(graph: Graph) -> set[Value]:
    """Return the values that come out of the program with a layout."""
    return {v for v in graph.values if any(_lies(graph, end) for end in v.readers)}


def updates(graph: Graph) -> set[int]:
    """Return the nodes of pointwise equations that lead to nothing but new state: their loop is paid for with that."""
    readers = graph.readers()
    found: set[int] = set()
    waiting = [n for n in readers if _is_pointwise(graph, (n, 0))]
    while True:
        new = {
            n
            for n in waiting
            if n not in found
            and all(_lies(graph, end) or (not isinstance(end, Fixed) and end[0] in found) for end in readers[n])
        }
        if not new:
            return found
        found |= new


def multiplied(graph: Graph) -> set[Value]:
    """Return the values that products read."""

    def is_product(end) -> bool:
        eqn = None if isinstance(end, Fixed) else graph.equation(end[0])
        return eqn is not None and eqn.primitive.name == "dot_general"

    return {v for v in graph.values if any(map(is_product, v.readers))}


def touches(graph: Graph) -> dict[int, list[Touch]]:
    """Return by node what its members read of inputs, each by its first pointwise reader, and write of new state."""
    found: dict[int, list[Touch]] = {}

    def note(end, is_read: bool, value: Value, count: int) -> None:
        node, position = end
        found.setdefault(node, []).append(Touch(is_read, position, value, count / graph.nodes[node].count))

    for value, count in graph.values.items():
        if _lies(graph, value.source):
            reader = next((end for end in value.readers if _is_pointwise(graph, end)), None)
            if reader is not None:
                note(reader, True, value, count)
        elif _is_pointwise(graph, value.source) and any(_lies(graph, end) for end in value.readers):
            note(value.source, False, value, count)
    return found


def _lies(graph: Graph, end) -> bool:
    """Return whether an end is an input of the program, or an output with a layout."""
    if isinstance(end, Fixed):
        return True
    group = graph.nodes[end[0]]
    return group.signature < 0 and group.port is None


def _is_pointwise(graph: Graph, end) -> bool:
    eqn = None if isinstance(end, Fixed) else graph.equation(end[0])
    return eqn is not None and eqn.primitive.name != "to_sbp" and is_divided(eqn.primitive.name)
