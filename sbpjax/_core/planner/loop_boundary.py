"""Loop boundaries (ports): a program and the bodies of its loops are planned as one.

A ``scan`` is not an equation of its own to the whole-program planner. The equations of its body are nodes like any
others, each counted once per iteration, and a value that crosses the boundary goes through a *port*, which has the same
layout outside and inside:

    shared    a value that every iteration reads: converted before the loop, once
    sliced    a stack with one slice per iteration: ``S(d + 1)`` of the stack is ``S(d)`` of the slice
    carried   a loop-carried value: the initial value, every result and every read have one layout
    stacked   the slices that the iterations give: ``S(d)`` of the slice is ``S(d + 1)`` of the stack

So a gradient summed over micro-batches stays P through the loop because its carried port costs nothing as P, and is
reduced once after it; the split of a batch enters a loop over layers as the carried stream's layout.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import jax.numpy as jnp

from sbpjax._core.programs.normalise import Program
from sbpjax._core.programs.rules import Strategy
from sbpjax.sbp.algebra import B, P, shift_splits

KINDS = ("shared", "sliced", "carried", "stacked")

# The end of a value at a node: ``(node, position)``.
End = tuple[int, int]


@dataclass
class Region:
    """A program and, for each of its equations, the node or loop that plans it.

    Attributes:
        program: the flat program.
        nodes: for every equation its node, a `Loop`, or None where everything is uniform.
    """

    program: Program
    nodes: list = field(default_factory=list)


@dataclass
class Loop:
    """A ``scan`` equation in the planner's graph.

    Attributes:
        region: its body.
        iterations: the runs of the body.
        ins: for every operand its end outside, None if it is uniform.
        outs: for every output its end outside.
        body_ins: for every input of the body its end inside, None if it is uniform.
        body_outs: for every output of the body its end inside.
    """

    region: Region
    iterations: int
    ins: list
    outs: list
    body_ins: list
    body_outs: list


def port_strategies(kind: str, aval) -> list[Strategy]:
    """Return the strategies of a port whose value inside the loop is ``aval``; the broadcast one is the last."""
    codes = [d for d, n in enumerate(aval.shape) if n > 1]
    # Integers are never partial: a sum of token numbers means nothing, and casts do not commute with sums.
    if jnp.issubdtype(aval.dtype, jnp.inexact):
        codes.append(P)
    strategies = []
    for code in (*codes, B):  # the stacked dim itself is never split: an iteration would have its slice on one rank
        (stack,) = shift_splits((code,), 1)
        ins, outs = {
            "shared": ((code,), (code,)),
            "sliced": ((stack,), (code,)),
            "carried": ((code, code), (code, code)),
            "stacked": ((code,), (stack,)),
        }[kind]
        strategies.append(Strategy(ins, outs))
    return strategies
