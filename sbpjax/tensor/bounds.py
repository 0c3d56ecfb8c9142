"""Bounds of index tensors: `x[index]`, `embedding` and class numbers name places that exist.

A program on an accelerator cannot raise, and to read an index back would stall it. On the CPU the index is at hand,
so it is looked at before the op runs: ``embedding(ids, table)`` with an id of 50 for 50 rows is an error there and not
a row of NaN. Indices on other devices, in a trace and in partial sums are not read.
"""

from __future__ import annotations

import jax
import numpy as np

from sbpjax.errors import OpIndexError, message
from sbpjax.sbp import eager

from .tensor import Tensor


def parts_on_cpu(index) -> list[np.ndarray]:
    """Return the values of an index that are at hand on the host; none if they would have to be fetched or computed."""
    if not isinstance(index, Tensor):
        return []
    layout = index._fresh()._layout
    if isinstance(index._array, jax.core.Tracer):  # a constant that a user's own jit traces
        return []
    if index._plain:
        return [np.asarray(index._array)] if index.device.type == "cpu" else []
    if layout is None or layout.shape is None or layout.placement.type != "cpu" or layout.partial_axes:
        return []
    if all(code == -1 for code in layout.codes):
        return [np.asarray(index._array.addressable_shards[0].data)]
    return [np.asarray(part) for part in eager.local_shards(index._array, layout).values()]


def outside(index, low: int, high: int, ignored: int | None = None) -> int | None:
    """Return an element of an index that is not in ``[low, high)``, None if all are or if it is not at hand."""
    for part in parts_on_cpu(index):
        if not part.size or part.dtype.kind not in "iu" or (part.min() >= low and part.max() < high):
            continue
        bad = part[(part < low) | (part >= high)]
        bad = bad if ignored is None else bad[bad != ignored]
        if bad.size:
            return int(bad.flat[0])
    return None


def check_rows(asked: str, index, table, dim: int, ignored: int | None = None) -> None:
    """Raise unless every element of an index names a place in a dim of a table, or is the ignored number.

    Raises:
        OpIndexError: an element is outside.
    """
    if not isinstance(table, Tensor) or table.ndim <= dim:
        return  # the op itself says so
    size = table.shape[dim]
    bad = outside(index, 0, size, ignored)
    if bad is not None:
        but = "" if ignored is None else f", or is ignore_index={ignored}"
        raise OpIndexError(
            message(
                asked,
                f"{bad} among {index.dtype.name}{list(index.shape)}",
                f"index out of range: every number is in [0, {size}){but}",
                f"check the data, e.g. index.clamp(0, {size - 1}), or make the other input larger than {bad}",
            )
        )
