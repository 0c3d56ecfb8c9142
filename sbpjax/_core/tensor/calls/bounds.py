"""Bounds checks of index tensors: `x[index]`, `gather`, `scatter`, `embedding` and class indices.

A program on an accelerator cannot raise, and to read an index back would stall it. On the CPU the index is in host
memory, so it is checked before the op runs: ``embedding(ids, table)`` with an id of 50 for 50 rows is an error there
and not a row of NaN, and a write to such a place is an error and not lost. Indices on other devices, in a trace and
in partial sums are not read.
"""

from __future__ import annotations

import weakref

import numpy as np
from jax.core import Tracer

from sbpjax._core.compiler import conversions
from sbpjax.errors import OpBoundsError, OpIndexError

from ..handle.tensor import Tensor


def parts_on_cpu(index) -> list[np.ndarray]:
    """Return the values of an index in host memory; none if they would have to be fetched or computed."""
    if not isinstance(index, Tensor):
        return []
    layout = index._fresh()._layout
    if not index._kind:
        return [np.asarray(index._array)] if index.device.type == "cpu" else []
    if index.is_meta or isinstance(index._array, Tracer):  # a constant that a user's own jit traces
        return []
    if layout is None or layout.shape is None or layout.placement.type != "cpu" or layout.partial_axes:
        return []
    if all(code == -1 for code in layout.codes) and index._array.addressable_shards:
        return [np.asarray(index._array.addressable_shards[0].data)]
    # An error that only one process sees would leave the others waiting.
    if layout.placement.spans_processes:
        return []
    return [np.asarray(part) for part in conversions.local_shards(index._array, layout).values()]


def value_on_cpu(x) -> np.ndarray | None:
    """Return the values of a tensor as one array, for conditions on rows, places or counts; else as `parts_on_cpu`."""
    parts = parts_on_cpu(x)
    if len(parts) < 2:
        return parts[0] if parts else None
    # On the devices of this process alone: other processes do not join.
    whole = conversions.move(x._array, x._layout, x._layout.with_codes((-1,) * len(x._layout.codes)))
    return np.asarray(whole.addressable_data(0))


# By its id, an array that was checked: a reference, and the bounds that it passed.
_inside: dict[int, tuple] = {}


def find_out_of_bounds(index, low: int, high: int, ignored: int | None = None) -> int | None:
    """Return an element of an index outside ``[low, high)``, None if there is none or the index is not on the host.

    The positions of a sequence recur in every step, and so may tokens: an array that passed is not read again.
    """
    if not isinstance(index, Tensor):
        return None
    array = index._fresh()._array
    # By id, since arrays cannot be hashed; the reference detects a new array that got the id of a dead one.
    known = _inside.get(id(array))
    if known is not None and known[1:] == (low, high, ignored) and known[0]() is array:
        return None
    bad = _search_out_of_bounds(index, low, high, ignored)
    if bad is None and not index._kind:
        if len(_inside) >= 1024:
            _inside.clear()
        _inside[id(array)] = weakref.ref(array), low, high, ignored
    return bad


def _search_out_of_bounds(index: Tensor, low: int, high: int, ignored: int | None) -> int | None:
    for part in parts_on_cpu(index):
        if not part.size or part.dtype.kind not in "iu" or _is_within(part, low, high):
            continue
        bad = part[(part < low) | (part >= high)]
        bad = bad if ignored is None else bad[bad != ignored]
        if bad.size:
            return int(bad.flat[0])
    return None


def _is_within(part: np.ndarray, low: int, high: int) -> bool:
    # Read as unsigned, negative numbers are the largest.
    if low == 0 <= high and part.dtype.kind == "i":
        return bool(part.view(f"u{part.dtype.itemsize}").max() < high)
    return bool(part.min() >= low and part.max() < high)


def check_rows(operation: str, index, table, dim: int, ignored: int | None = None) -> None:
    """Raise unless every element of an index names a place in a dim of a table, or is the ignored number."""
    if not isinstance(table, Tensor) or table.ndim <= dim:
        return  # the op itself raises
    size = table.shape[dim]
    bad = find_out_of_bounds(index, 0, size, ignored)
    if bad is not None:
        but = "" if ignored is None else f", or is ignore_index={ignored}"
        parts = [part[part != ignored] if ignored is not None else part for part in parts_on_cpu(index)]
        least, most = min(int(p.min()) for p in parts if p.size), max(int(p.max()) for p in parts if p.size)
        raise OpIndexError(
            operation,
            f"{bad} among {index.dtype.name}{list(index.shape)}, whose numbers are {least} to {most}",
            f"index out of range: every number is in [0, {size}){but}",
            f"check the data, e.g. index.clamp(0, {size - 1}), or make the other input {most + 1} in dim {dim}",
        )


def check_dim(operation: str, index, x, dim: int, negative: bool = False) -> None:
    """Raise unless every element of an index names a place in a dim of ``x``.

    Args:
        operation: the op, for the message.
        index: the index; anything that is no tensor is left to the op.
        x: the tensor that is read or written.
        dim: a dim of ``x``; one that it has not is left to the op.
        negative: whether the op counts negative numbers from the end.
    """
    if isinstance(x, Tensor) and -max(x.ndim, 1) <= dim < max(x.ndim, 1):
        check_size(operation, index, x.shape[dim] if x.ndim else 1, dim % max(x.ndim, 1), negative)


def check_size(operation: str, index, size: int, dim: int, negative: bool = False) -> None:
    """Raise unless every element of an index names a place in a dim of a size; see `check_dim`."""
    low = -size if negative else 0
    bad = find_out_of_bounds(index, low, size)
    if bad is not None:
        fix = "check the data, e.g. " + (
            f"index.clamp({low}, {size - 1})" if size else "no index fits an empty dim: use an empty one"
        )
        if low <= bad + size < size and not negative:
            fix = f"this op does not count from the end: index % {size}"
        raise OpBoundsError(
            operation,
            f"{bad} among {index.dtype.name}{list(index.shape)}",
            f"index {bad} is out of bounds for dimension {dim} with size {size}: every number is in [{low}, {size})",
            fix,
        )


def check_non_negative(operation: str, x, label: str) -> None:
    """Raise if an integer tensor in host memory holds a negative number."""
    bad = find_out_of_bounds(x, 0, 1 << 62)
    if bad is not None:
        raise OpBoundsError(
            operation,
            f"{bad} among {x.dtype.name}{list(x.shape)}",
            f"{label} are non-negative",
            "x - x.min() counts from the smallest",
        )


def check_tuples(operation: str, index, shape: tuple[int, ...]) -> None:
    """Raise unless every row of an index of n-tuples names a place in the first n dims of a shape."""
    count = index.shape[-1] if isinstance(index, Tensor) and index.ndim else 0
    if not 0 < count <= len(shape):
        return  # the op itself raises
    sizes = np.asarray(shape[:count], np.int64)
    values = value_on_cpu(index)
    if values is None or values.dtype.kind not in "iu":
        return
    bad = (values < 0) | (values >= sizes)
    if bad.any():
        place = tuple(np.argwhere(bad)[0])
        dim = int(place[-1])
        raise OpBoundsError(
            operation,
            f"{int(values[place])} among {index.dtype.name}{list(index.shape)}",
            f"index {int(values[place])} is out of bounds for dimension {dim} with size {shape[dim]}: every "
            f"number of column {dim} is in [0, {shape[dim]})",
            "check the data: column d of the index names places along dim d",
        )
