"""Min-cut rematerialization: saves the fewest bytes from which pointwise work recomputes the rest.

A bfloat16 gelu of ``h`` wants five float32 values of ``h``'s shape in its backward; all of them are pointwise functions
of ``h``. Saving ``h`` alone is a tenth of the bytes, and to compute the five again costs a pass over ``h`` that the
compiler fuses into their readers. Of a softmax, where the backward wants ``e`` and ``e / sum``, one is enough.

Which values to save is a minimum cut: every wanted value must be cut off from non-pointwise equations (products,
reductions, random numbers), through pointwise ones; a cut through a value costs its bytes. A stretch of layers that
runs as a loop is where this matters: values passed from one loop to the next are stored, even if the compiler could
fuse them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from sbpjax._core.jax_private import DropVar, Var
from sbpjax._core.programs.primitives import CHEAP, MOVES, TRANSCENDENTAL
from sbpjax._core.runtime.optional_packages import LazyModule

sparse = LazyModule("scipy.sparse")
csgraph = LazyModule("scipy.sparse.csgraph")


# One pass over the operands, of which a compiler makes part of its reader.
POINTWISE = CHEAP | TRANSCENDENTAL | MOVES | {"div", "broadcast_in_dim", "slice"}
_SCALE = 1 << 28  # capacities are 32-bit integers


def least_saved(eqns: list, wanted: Iterable[Var], free: set) -> set:
    """Return the values to save, of the fewest bytes, so that pointwise equations recompute all wanted ones.

    Args:
        eqns: the equations of the forward, in order.
        wanted: the values that the backward reads.
        free: values that the backward has anyway: inputs, constants and values computed from them at no cost.
    """
    maker = {v: e for e in eqns for v in e.outvars if not isinstance(v, DropVar)}
    wanted = [v for v in dict.fromkeys(wanted) if v not in free and v in maker]
    values: dict[Var, int] = {}
    edges: list[tuple[int, int, int]] = []
    roots = []
    todo = list(wanted)
    while todo:
        v = todo.pop()
        if v in values or v in free:
            continue
        values[v] = len(values)
        # A product, a reduction or a random draw is never computed again: it or a value computed from it is saved.
        if not _is_recomputable(maker.get(v)):
            roots.append(v)
            continue
        todo += [u for u in maker[v].invars if isinstance(u, Var)]
    if not roots:
        return set()
    sizes = {v: _bytes(v) for v in values}
    # SciPy's maximum flow counts in int32.
    unit = max(1, sum(sizes.values()) // _SCALE)
    source, sink = 2 * len(values), 2 * len(values) + 1
    endless = 2 * _SCALE
    for v, k in values.items():
        # A value is an edge of its bytes: to cut it is to save it. Edges of infinite capacity lead to it from its
        # operands.
        edges.append((2 * k, 2 * k + 1, max(1, sizes[v] // unit)))
        if v not in roots:
            edges += [
                (2 * values[u] + 1, 2 * k, endless)
                for u in dict.fromkeys(u for u in maker[v].invars if isinstance(u, Var))
                if u in values
            ]
    edges += [(source, 2 * values[v], endless) for v in roots]
    edges += [(2 * values[v] + 1, sink, endless) for v in wanted]
    behind = _behind_cut(edges, source, sink)
    return {v for v, k in values.items() if 2 * k + 1 in behind and 2 * k not in behind}


def _is_recomputable(eqn) -> bool:
    """Return whether an equation may be computed again."""
    return eqn is not None and eqn.primitive.name in POINTWISE and len(eqn.outvars) == 1 and not eqn.effects


def _bytes(v: Var) -> int:
    aval: Any = v.aval
    return max(1, math.prod(aval.shape) * getattr(aval.dtype, "itemsize", 8))


def _behind_cut(edges: list[tuple[int, int, int]], source: int, sink: int) -> set[int]:
    """Return the nodes on the sink's side of the minimum cut nearest to the sink: the least is computed again."""
    starts, ends, capacities = (np.asarray(column, np.int32) for column in zip(*edges, strict=True))
    graph = sparse.csr_array((capacities, (starts, ends)), shape=(sink + 1, sink + 1))
    left = graph - csgraph.maximum_flow(graph, source, sink).flow
    left.eliminate_zeros()
    return set(csgraph.breadth_first_order(sparse.csr_array(left.T), sink, return_predecessors=False).tolist())
