"""Boxing between placements of one process: overlapping, disjoint, 1-D and N-D.

Placements over the same devices in the same order only read the grid differently: ``S0`` on ``[0, 1, 2, 3]`` is
``(S0, S0)`` on ``[[0, 1], [2, 3]]`` with no byte moved, and so are B and P. Otherwise the tensor travels in an even
layout without partial sums, which `jax.device_put` carries between any two sets of devices, and is converted on
either side as needed.
"""

from __future__ import annotations

import functools

import jax

from sbpjax._core.runtime.ambient_mesh import hide_mesh, jit_without_mesh
from sbpjax.sbp import boxing
from sbpjax.sbp.algebra import B, P
from sbpjax.sbp.layout import Layout
from sbpjax.sbp.no_alias import copy_without_alias
from sbpjax.sbp.placement import flat_placement

from .eager import global_ops


@hide_mesh
def transfer(array, source: Layout, target: Layout) -> jax.Array:
    """Return the physical array of ``target`` made from the one of ``source``.

    The devices of both placements are of this process, or they are the same in the same order.
    """
    if source.placement == target.placement:
        return global_ops.box(array, source, target)
    if flat_placement(source.placement) == flat_placement(target.placement):
        leave, arrive = _relabel(source, target)
    else:
        leave, arrive = intermediate_layout(source), intermediate_layout(target)
    array = global_ops.box(array, source, leave)
    if leave.partial_axes:
        array = _make_reshape(leave, arrive)(array)
    else:
        array = jax.device_put(copy_without_alias(array, arrive.sharding), arrive.sharding)
    return global_ops.box(array, arrive, target)


def _relabel(source: Layout, target: Layout) -> tuple[Layout, Layout]:
    """Return the cheapest pair of layouts that hold the same blocks on the same devices."""
    pairs = []
    for code in (*range(len(source.shape)), P, B):
        leave = source.with_codes((code,) * len(source.codes))
        arrive = target.with_codes((code,) * len(target.codes))
        # Uneven nested splits pad per axis, so the same dim on two grids over the same devices may be cut at other
        # rows.
        if code >= 0 and leave.parts() != arrive.parts():
            continue
        pairs.append((_cost(source, leave) + _cost(arrive, target), leave, arrive))
    _, leave, arrive = min(pairs, key=lambda pair: pair[0])
    return leave, arrive


def intermediate_layout(layout: Layout) -> Layout:
    """Return the layout nearest to ``layout`` that is even and has no partial sums."""
    if layout.is_even and not layout.partial_axes:
        return layout
    choices = [layout.with_codes((B,) * len(layout.codes))]
    choices += [layout.with_codes((d,) * len(layout.codes)) for d in range(len(layout.shape))]
    choices = [c for c in choices if c.is_even]
    return min(choices, key=lambda c: _cost(layout, c))


def _cost(a: Layout, b: Layout) -> int:
    return boxing.cost(a.shape, a.dtype.itemsize, a.placement.hierarchy, a.codes, b.codes)


@functools.lru_cache(maxsize=1024)
def _make_reshape(leave: Layout, arrive: Layout):
    return jit_without_mesh(lambda x: x.reshape(arrive.physical_shape), out_shardings=arrive.sharding)
