"""Lookups that the TPU compiler makes in bfloat16: those whose rows nothing but products reads.

    rows = table[ids]                     f32[26624, 64], looked up in a copy of the table that is not turned
    x = rows.reshape(1024, 1664) @ up     a product at the default precision rounds what it reads

So the copy of a ``(4,000,000, 64)`` table is made in bfloat16: 1,024 MB are written, not 2,048. In ZeRO-1's step the
update reads its part of the table, too, in float32: of 62,500 rows, which are no whole tiles when turned, so that they
are cut from the copy, and that is float32 then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sbpjax.planner.graph import Fixed, Graph, Value
from sbpjax.programs.plan import Codes
from sbpjax.programs.primitives import MOVES
from sbpjax.sbp.layout import local_shape
from sbpjax.sbp.tpu_tiles import BF16_BYTES, LANES, in_tiles, is_turned_table


def is_rounded(value, readers: Callable[[Any], list]) -> bool:
    """Return whether nothing but products at the default precision reads a value.

    Args:
        value: what stands for it.
        readers: returns who reads a value: pairs of an equation and what stands for its result; None for the equation
            where an output of the program reads it.
    """

    def rounds(eqn, result) -> bool:
        if eqn is not None and eqn.primitive.name in MOVES:
            return is_rounded(result, readers)
        return eqn is not None and eqn.primitive.name == "dot_general" and eqn.params.get("precision") is None

    found = readers(value)
    return bool(found) and all(rounds(eqn, result) for eqn, result in found)


def is_lookup(eqn) -> bool:
    """Return whether an equation looks up numbers of float32."""
    return eqn is not None and eqn.primitive.name == "gather" and eqn.outvars[0].aval.dtype == "float32"


def rounded_lookups(graph: Graph) -> set[int]:
    """Return the nodes that look up rows of float32 which nothing but products reads."""
    ends = graph.readers()

    def readers(node: int) -> list:
        return [(None, None) if isinstance(e, Fixed) else (graph.equation(e[0]), e[0]) for e in ends.get(node, ())]

    return {n for n in ends if is_lookup(graph.equation(n)) and is_rounded(n, readers)}


def tables_of(graph: Graph, lookups: set[int]) -> set[Value]:
    """Return the values in which some lookups look rows up."""
    operands = {(n, 0) for n in lookups}
    return {v for v in graph.values if operands.intersection(v.readers)}


def copied_whole(table: Value, sizes: Codes, source: Codes, target: Codes) -> float:
    """Return the bytes that a table's copy grows by, where a part of the table is cut from it.

    Args:
        table: a value in which rows are looked up in bfloat16.
        sizes: the placement's hierarchy.
        source: its nd-sbp.
        target: that of the part.
    """
    held, part = local_shape(table.shape, source, sizes), local_shape(table.shape, target, sizes)
    if not is_turned_table(held, table.itemsize) or part[0] % LANES == 0:
        return 0.0
    return in_tiles(held, table.itemsize) - in_tiles(held, BF16_BYTES)
