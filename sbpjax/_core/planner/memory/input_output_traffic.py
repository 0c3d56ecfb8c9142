"""HBM traffic of a program's inputs and outputs (parameters, optimizer state).

A step of Adam reads a parameter, its two moments and the gradient, and writes three of them: on TPU that is the HBM
traffic of the update, which the pointwise equations between them hide in one loop. An input that only products read is
paid for there, or hidden by their flops; one that is converted, in the conversion. Of ZeRO-1's parameters on 64 ranks

    read by products, whole           part of the products
    read by the update, a 64th        7.5 of 478 MB: the slice is taken where it is read
    written by the update, a 64th     7.5 MB; the gather after it writes the whole

Without this a plan of wide & deep leaves the update of its table undivided: half as long again by the TPU compiler
(`benchmarks/results/tpu_prices_removed.md`). Only models whose memory is read in tiles (`CostModel.tiles`) are priced
so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from sbpjax._core.planner.graph import Fixed, Graph, Value
from sbpjax._core.planner.prices.local_work import is_divided
from sbpjax._core.programs.plan import Codes
from sbpjax.sbp.layout import local_shape


@dataclass(frozen=True)
class StoredOperand:
    """An operand or result of a node that is stored in memory before or after the program."""

    is_read: bool
    position: int
    value: Value
    times: float

    def bytes(self, chosen, sizes: Codes) -> float:
        """Return the bytes of memory that this costs one device under strategies chosen for axes of ``sizes``."""
        codes = tuple((s.ins if self.is_read else s.outs)[self.position] for s in chosen)
        return self.times * math.prod(local_shape(self.value.shape, codes, sizes)) * self.value.itemsize


def stored_operands(graph: Graph) -> dict[int, list[StoredOperand]]:
    """Return by node the inputs its members read (each by its first pointwise reader) and the state they write."""
    found: dict[int, list[StoredOperand]] = {}

    def note(end, is_read: bool, value: Value, count: int) -> None:
        node, position = end
        found.setdefault(node, []).append(StoredOperand(is_read, position, value, count / graph.nodes[node].count))

    for value, count in graph.values.items():
        if _is_stored(graph, value.source):
            # Only the first: the compiler fuses the others with it, or they read from fast memory by then.
            reader = next((end for end in value.readers if _is_pointwise(graph, end)), None)
            if reader is not None:
                note(reader, True, value, count)
        elif _is_pointwise(graph, value.source) and any(_is_stored(graph, end) for end in value.readers):
            note(value.source, False, value, count)
    return found


def _is_stored(graph: Graph, end) -> bool:
    """Return whether an end is an input of the program, or an output with a layout."""
    if isinstance(end, Fixed):
        return True
    group = graph.nodes[end[0]]
    return group.form < 0 and group.port is None  # a free input; a port is inside the program


def _is_pointwise(graph: Graph, end) -> bool:
    eqn = None if isinstance(end, Fixed) else graph.equation(end[0])
    # `to_sbp` is a mark: the conversion that it requests is priced as one.
    return eqn is not None and eqn.primitive.name != "to_sbp" and is_divided(eqn.primitive.name)
