"""Assembly of a global tensor from the local tensors of the ranks.

Four ranks that hold 2, 1, 1 and 1 rows of width 3 make a ``(5, 3)`` tensor under ``S0``, a sum of the four under ``P``,
and under ``B`` the block of the first rank, as OneFlow does when every process calls ``to_global`` on a local tensor.
The blocks must have the sizes of the balanced rule: 1, 1, 1 and 2 rows are an error, because no layout has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from sbpjax._core.runtime.ranks_text import ranks_text
from sbpjax.errors import OpError, OpTypeError
from sbpjax.sbp import algebra
from sbpjax.sbp.algebra import B, P
from sbpjax.sbp.layout import Layout, axes_of_dims, layout_of
from sbpjax.sbp.placement import placement as Placement
from sbpjax.sbp.shape_check import find_shape_mismatch


def from_local_shards(blocks: Mapping[int, np.ndarray], placement: Placement, sbp) -> tuple[jax.Array, Layout]:
    """Return the global tensor whose parts are ``blocks``.

    Args:
        blocks: rank → its block: its part under split, its summand under partial_sum. Under broadcast the block of the
            first rank of the axis counts for all. Blocks of ranks outside the placement are ignored.
        placement: the tensor's placement.
        sbp: the tensor's nd-sbp.

    Returns:
        The physical array and its layout.

    Raises:
        OpError: a rank's block is missing, the shapes differ along a dim that is not split, or the sizes of the parts
            are not those of the balanced rule.
        OpTypeError: the dtypes differ.
        SbpError: the sbp does not fit the blocks or the placement.

    Example:
        >>> p = placement("cpu", [0, 1])
        >>> array, layout = from_local_shards({0: np.ones((2, 3)), 1: np.ones((1, 3))}, p, "S0")
        >>> layout.shape
        (3, 3)
    """
    ranks = [int(r) for r in placement.ranks.flat]
    operation = f"assembling a global tensor from local ones, sbp={sbp!r}"
    missing = [r for r in ranks if r not in blocks]
    if missing:
        raise OpError(
            operation,
            f"no block of ranks {ranks_text(missing)}",
            f"every rank of {placement!r} contributes one",
            "add them",
        )
    given = {r: np.asarray(blocks[r]) for r in ranks}
    _check_kinds(operation, given)
    codes = algebra.parse(sbp, placement.hierarchy, given[ranks[0]].ndim)
    shape = _logical_shape(given, placement, codes)
    layout = layout_of(placement, codes, shape, given[ranks[0]].dtype)
    _check_parts(operation, given, layout)
    return _place(given, layout), layout


def _check_kinds(operation: str, given: dict) -> None:
    dtypes = {r: str(b.dtype) for r, b in given.items()}
    if len(set(dtypes.values())) > 1:
        raise OpTypeError(
            operation, f"dtypes by rank {dtypes}", "all parts of one tensor have one dtype", "x.to(dtype) first"
        )
    if len({b.ndim for b in given.values()}) > 1:
        shapes = {r: b.shape for r, b in given.items()}
        raise OpError(
            operation,
            f"shapes by rank {shapes}",
            "all parts of one tensor have the same number of dims",
            "reshape them",
        )


def _logical_shape(given: dict, placement: Placement, codes) -> tuple[int, ...]:
    """Return the logical shape: along a split dim the sum over the ranks that the splitting axes enumerate."""
    shape = []
    ranks = placement.ranks
    for dim, axes in enumerate(axes_of_dims(codes, next(iter(given.values())).ndim)):
        line = tuple(slice(None) if a in axes else 0 for a in range(ranks.ndim))
        shape.append(sum(given[int(r)].shape[dim] for r in np.atleast_1d(ranks[line]).flat))
    return tuple(shape)


def _check_parts(operation: str, given: dict, layout: Layout) -> None:
    expected = {
        int(r): tuple(count for _, count in part)
        for r, part in zip(layout.placement.ranks.flat, layout.parts(), strict=True)
    }
    if any(given[r].shape != e for r, e in expected.items()):
        seen = {r: b.shape for r, b in given.items()}
        raise OpError(operation, f"shapes by rank {seen}", *find_shape_mismatch(seen, expected, layout.codes))


def _place(given: dict, layout: Layout) -> jax.Array:
    placement = layout.placement
    local = []
    for index in np.ndindex(*placement.hierarchy):
        device: Any = placement.devices[index]
        if device.process_index != jax.process_index():
            continue
        speaker = tuple(0 if c == B else i for i, c in zip(index, layout.codes, strict=True))
        block = given[int(placement.ranks[speaker])]
        if block.shape != layout.local_shape:
            padded = np.zeros(layout.local_shape, block.dtype)
            padded[tuple(slice(0, n) for n in block.shape)] = block
            block = padded
        stacked = sum(c == P for c in layout.codes)
        local.append(jax.device_put(block.reshape((1,) * stacked + block.shape), device))
    return jax.make_array_from_single_device_arrays(layout.physical_shape, layout.sharding, local, dtype=layout.dtype)
