"""Indexing ops for ``x[...]``: the index's structure is static, its tensors are array inputs.

An index becomes a *spec*, one tuple per entry, and the list of its tensors, by `parse`. Worked case, x of shape (4,
5, 6)::

    x[1:3, i, None, ..., -1]   ->   spec (("slice", 1, 3, 1), ("array",), ("new",), ("int", 5)),  arrays [i]
    getitem(x, i, spec=spec)        # shape (2, *i.shape, 1)

Entries: ``("int", i)``, ``("slice", start, stop, step)`` with bounds inside the dim, ``("new",)`` for None,
``("pick",)`` for a 0-d integer tensor (a select whose place is data), ``("array",)`` for other integer tensors
(negative ones count from the end), and ``("mask", ndim)`` for a bool tensor. The number of True's is data, so a mask
can only be *written* with a value that has one element per mask place; for everything else the caller replaces it by
index tensors with `expand_masks`.
"""

from __future__ import annotations

import functools

import numpy as np
from jax import lax

from ..dims import fail, shape_text
from ..promote import BOOL, broadcast_to, cast, joint_shape
from .gather import FILL, wrap_negative


def _is_array(entry) -> bool:
    return hasattr(entry, "dtype") and hasattr(entry, "ndim") and not isinstance(entry, np.generic)


def parse(index, shape) -> tuple[tuple, list]:
    """Return (spec, tensors) of an index on a tensor of ``shape``; bounds and number of entries are checked.

    Args:
        index: the index in the brackets: int, slice, None, Ellipsis, bool, tensor, list, or a tuple of them.
        shape: the shape of the indexed tensor.

    Raises:
        OpIndexError: too many entries, an int outside its dim, a mask of another shape.
        OpTypeError: an entry of another type, a float tensor.
    """
    entries = list(index) if isinstance(index, tuple) else [index]
    entries = [np.asarray(e) if isinstance(e, (list, range)) else e for e in entries]
    entries = [
        e.astype(np.int64) if isinstance(e, np.ndarray) and e.size == 0 and e.dtype.kind == "f" else e for e in entries
    ]
    used = sum(_width(e) for e in entries)
    dots = [i for i, e in enumerate(entries) if e is Ellipsis]
    if used > len(shape) or len(dots) > 1:
        fail(
            "index",
            "x[...]",
            f"x {tuple(shape)}, {used} indices, {len(dots)} ellipses",
            f"too many indices: at most {len(shape)}, and one ellipsis",
            "drop an entry",
        )
    at = dots[0] if dots else len(entries)
    entries[at : at + len(dots)] = [slice(None)] * (len(shape) - used)
    spec, tensors, dim = [], [], 0
    for entry in entries:
        if isinstance(entry, (bool, np.bool_)):
            spec += [("new",)] if entry else [("none",)]
            continue
        if entry is None:
            spec.append(("new",))
            continue
        size = shape[dim]
        if isinstance(entry, slice):
            spec.append(_slice_entry(entry, size))
        elif _is_array(entry):
            spec.append(_array_entry(entry, shape[dim:], dim))
            tensors.append(entry)
        else:
            spec.append(_int_entry(entry, size, dim))
        dim += _width(entry)
    return tuple(spec), tensors


def _width(entry) -> int:
    """Return how many dims of x an entry uses."""
    if entry is None or entry is Ellipsis or isinstance(entry, (bool, np.bool_)):
        return 0
    return entry.ndim if _is_array(entry) and np.dtype(_dtype(entry)) == np.bool_ else 1


def _dtype(entry):
    return getattr(entry.dtype, "np_dtype", entry.dtype)


def _slice_entry(entry: slice, size: int) -> tuple:
    if entry == slice(None):
        return ("slice", 0, size, 1)  # of a free size too
    start, stop, step = (None if v is None else int(v) for v in (entry.start, entry.stop, entry.step))
    if step == 0 or (step or 1) < 0:
        fail("value", f"x[{start}:{stop}:{step}]", f"a dim of size {size}", "the step is greater than zero", "use flip")
    start, stop, step = slice(start, stop, step).indices(size)
    return ("slice", start, max(start, stop), step)


def _int_entry(entry, size: int, dim: int) -> tuple:
    if not hasattr(entry, "__index__"):
        fail(
            "index" if isinstance(entry, float) else "type",
            f"x[{entry!r}]",
            f"an index of type {type(entry).__name__}",
            "an index is an int, slice, None, ..., bool, list or tensor",
            "convert it to int",
        )
    i = entry.__index__()
    if not -size <= i < size:
        fail(
            "index",
            f"x[{i}]",
            f"dim {dim} of size {size}",
            f"index {i} is out of range [{-size}, {size - 1}]",
            "use a valid one",
        )
    return ("int", i % size)


def _array_entry(entry, sizes, dim: int) -> tuple:
    kind = np.dtype(_dtype(entry)).kind
    if kind == "b":
        if tuple(entry.shape) != tuple(sizes[: entry.ndim]):
            fail(
                "index",
                "x[mask]",
                f"mask {tuple(entry.shape)}, x's dims from {dim} on {tuple(sizes)}",
                f"The shape of the mask {shape_text(entry.shape)} at index 0 does not match the shape of the indexed "
                f"tensor {shape_text(sizes)} at index 0",
                "expand the mask first",
            )
        return ("mask", entry.ndim)
    if kind not in "iu":
        fail(
            "type",
            "x[tensor]",
            f"an index tensor of dtype {_dtype(entry)}",
            "index tensors are integers or bools",
            "i.long()",
        )
    return ("pick",) if entry.ndim == 0 else ("array",)


def expand_masks(spec, tensors, nonzero) -> tuple[tuple, list]:
    """Replace every mask by its index tensors.

    Args:
        spec: from `parse`.
        tensors: from `parse`.
        nonzero: function of a mask that returns one 1-d index tensor per dim of it.
    """
    out, found, rest = [], [], iter(tensors)
    for entry in spec:
        if entry[0] == "mask":
            indices = nonzero(next(rest))
            out += [("array",)] * len(indices)
            found += indices
        else:
            out.append(entry)
            if entry[0] in ("array", "pick"):
                found.append(next(rest))
    return tuple(out), found


class _Basic:
    """The part of a spec without tensors: one slice, dims dropped by ints, dims added by None."""

    def __init__(self, shape, spec) -> None:
        self.start, self.stop, self.step = [], [], []
        self.dropped, self.new, self.array_dims, self.pick_dims, self.kinds = [], [], [], [], []
        self.empty_dims = []
        place = 0
        for entry in spec:
            kind = entry[0]
            if kind in ("new", "none"):
                self.new.append(place)
                if kind == "none":
                    self.empty_dims.append(place)
                place += 1
                continue
            for _ in range(entry[1] if kind == "mask" else 1):
                dim = len(self.start)
                start, stop, step = (0, shape[dim], 1)
                if kind == "slice":
                    start, stop, step = entry[1:]
                elif kind == "int":
                    start, stop, step = entry[1], entry[1] + 1, 1
                    self.dropped.append(dim)
                self.start.append(start)
                self.stop.append(stop)
                self.step.append(step)
                if kind in ("array", "pick"):
                    (self.array_dims if kind == "array" else self.pick_dims).append(place)
                    self.kinds.append(kind)
                place += kind != "int"
        self.sizes = tuple(max(-(-(b - a) // s), 0) for a, b, s in zip(self.start, self.stop, self.step))
        self.whole = self.sizes == tuple(shape)
        kept = [n for d, n in enumerate(self.sizes) if d not in self.dropped]
        for place in self.new:
            kept.insert(place, 0 if place in self.empty_dims else 1)
        self.shape = tuple(kept)

    def read(self, x):
        if not self.whole:
            x = lax.slice(x, self.start, self.stop, None if set(self.step) == {1} else self.step)
        if self.dropped:
            x = lax.squeeze(x, self.dropped)
        x = lax.expand_dims(x, self.new) if self.new else x
        return x if x.shape == self.shape else lax.slice(x, [0] * x.ndim, self.shape)

    def write(self, x, value, accumulate: bool):
        """Return x with ``value`` of shape `shape` written, or added, at the slice."""
        if 0 in self.shape:
            return x
        value = lax.reshape(value, self.sizes) if value.shape != self.sizes else value
        if self.whole:
            return lax.add(x, value) if accumulate else value
        if accumulate or set(self.step) != {1}:
            ends = [
                (a, n - a - (m - 1) * s - 1, s - 1) for a, n, m, s in zip(self.start, x.shape, self.sizes, self.step)
            ]
            value = lax.pad(value, np.zeros((), x.dtype), ends)
            return lax.add(x, value) if accumulate else lax.select_n(self._hit(x.shape), x, value)
        return lax.dynamic_update_slice(x, value, [np.int32(a) for a in self.start])

    def _hit(self, shape):
        hits = []
        for d, (start, stop, step) in enumerate(zip(self.start, self.stop, self.step)):
            if (start, stop, step) == (0, shape[d], 1):
                continue
            i = lax.broadcasted_iota(np.int32, shape, d)
            here = lax.bitwise_and(lax.ge(i, np.int32(start)), lax.lt(i, np.int32(stop)))
            if step != 1:
                here = lax.bitwise_and(here, lax.eq(lax.rem(lax.sub(i, np.int32(start)), np.int32(step)), np.int32(0)))
            hits.append(here)
        return functools.reduce(lax.bitwise_and, hits)


def _places(dims, n_index: int, ndim: int) -> tuple[int, ...]:
    """Return the positions of x's other dims in the result: the index's are at the first adjacent dim, or in front."""
    at = dims[0] if dims == list(range(dims[0], dims[0] + len(dims))) else 0
    others = ndim - len(dims)
    return tuple(i if i < at else i + n_index for i in range(others))


def _joint(x, dims, arrays):
    """Return the index tensors wrapped, broadcast and stacked in a new last dim, and their common shape."""
    shape = joint_shape(*(a.shape for a in arrays))
    arrays = [
        lax.expand_dims(broadcast_to(wrap_negative(a, x.shape[d]), shape), (len(shape),)) for a, d in zip(arrays, dims)
    ]
    if len({a.dtype for a in arrays}) > 1:
        arrays = [cast(a, np.int64) for a in arrays]
    return (arrays[0] if len(arrays) == 1 else lax.concatenate(arrays, len(shape))), shape


def _take(x, dims, arrays):
    index, shape = _joint(x, dims, arrays)
    numbers = lax.GatherDimensionNumbers(
        offset_dims=_places(dims, len(shape), x.ndim), collapsed_slice_dims=tuple(dims), start_index_map=tuple(dims)
    )
    sizes = tuple(1 if d in dims else n for d, n in enumerate(x.shape))
    return lax.gather(x, index, numbers, sizes, mode=FILL)


def _put(x, dims, arrays, value, accumulate: bool):
    index, shape = _joint(x, dims, arrays)
    window = _places(dims, len(shape), x.ndim)
    numbers = lax.ScatterDimensionNumbers(
        update_window_dims=window, inserted_window_dims=tuple(dims), scatter_dims_to_operand_dims=tuple(dims)
    )
    sizes = iter(shape)
    kept = iter(n for d, n in enumerate(x.shape) if d not in dims)
    want = tuple(next(kept) if i in window else next(sizes) for i in range(len(window) + len(shape)))
    value = _fit_value(value, want, x.dtype)
    if accumulate:
        return lax.scatter_add(x, index, value, numbers, mode=FILL)
    # unique: of repeated places one wins, and each gets the gradient of the written value, as in torch
    return lax.scatter(x, index, value, numbers, unique_indices=True, mode=FILL)


def _fit_value(value, shape, dtype):
    """Return a value broadcast to the written region; leading dims of size 1 may be too many."""
    value = cast(value, dtype)
    own = np.shape(value)
    extra = len(own) - len(shape)
    if extra > 0 and set(own[:extra]) == {1}:
        value = lax.reshape(value, own[extra:])
    elif extra > 0 or any(a not in (1, b) for a, b in zip(own[::-1], shape[::-1])):
        fail(
            "shape",
            "x[...] = value",
            f"value {own}, region {shape}",
            "the value broadcasts to the region",
            "reshape the value",
        )
    return broadcast_to(value, shape)


def _split_arrays(basic: _Basic, arrays):
    picks = [a for a, k in zip(arrays, basic.kinds) if k == "pick"]
    return picks, [a for a, k in zip(arrays, basic.kinds) if k == "array"]


def _no_mask(spec, label: str) -> None:
    if any(entry[0] == "mask" for entry in spec):
        fail(
            "value",
            label,
            "a bool mask",
            "the size of the result depends on the mask's values",
            "use expand_masks first",
        )


def getitem(x, /, *arrays, spec):
    """Return ``x[...]`` for a spec of `parse`; an index tensor's element outside the dim reads NaN.

    Args:
        x: the tensor.
        arrays: the spec's integer tensors, in order.
        spec: the index's structure.
    """
    _no_mask(spec, "x[mask]")
    basic = _Basic(x.shape, spec)
    x = basic.read(x)
    picks, arrays = _split_arrays(basic, arrays)
    dims = list(basic.array_dims)
    for place, index in sorted(zip(basic.pick_dims, picks), key=lambda p: -p[0]):
        x = _take(x, [place], [index])
        dims = [d - (d > place) for d in dims]
    return _take(x, dims, arrays) if dims else x


def setitem(x, value, /, *arrays, spec, accumulate: bool = False):
    """Return x after ``x[...] = value``, or after ``+=`` with every repeated place counted.

    Args:
        x: the tensor.
        value: array or number, broadcast to the region and cast to x's dtype.
        arrays: the spec's tensors, in order.
        spec: the index's structure; a mask is allowed alone beside whole slices, with a value of one element per place.
        accumulate: add instead of writing.
    """
    if accumulate and x.dtype == BOOL:  # of bools the sum is whether any holds
        counts, value = cast(x, np.int32), cast(cast(value, BOOL), np.int32)
        return cast(setitem(counts, value, *arrays, spec=spec, accumulate=True), BOOL)
    if any(entry[0] == "mask" for entry in spec):
        return _set_masked(x, value, arrays, spec, accumulate)
    basic = _Basic(x.shape, spec)
    if not arrays:
        return basic.write(x, _fit_value(value, basic.shape, x.dtype), accumulate)
    picks, arrays = _split_arrays(basic, arrays)
    part = basic.read(x)
    if 0 in part.shape:
        return x
    if not picks:
        part = _put(part, list(basic.array_dims), arrays, value, accumulate)
    else:  # a pick leaves the other index tensors' adjacency alone, as an int would
        part = _put_picked(part, basic, picks, arrays, value, accumulate)
    return basic.write(x, part, False)


def _put_picked(part, basic: _Basic, picks, arrays, value, accumulate: bool):
    front = list(basic.pick_dims)
    rest = [d for d in range(part.ndim) if d not in front]
    order = front + rest
    moved = lax.transpose(part, order)
    inner_shape = tuple(part.shape[d] for d in rest)
    starts = [cast(wrap_negative(p, part.shape[d]), np.int64) for p, d in zip(picks, front)]
    zero = np.int64(0)
    starts = starts + [zero] * len(rest)
    sizes = (1,) * len(front) + inner_shape
    inner = lax.reshape(lax.dynamic_slice(moved, starts, sizes), inner_shape)
    dims = [rest.index(d) for d in basic.array_dims]
    if dims:
        inner = _put(inner, dims, arrays, value, accumulate)
    else:
        value = _fit_value(value, inner_shape, part.dtype)
        inner = lax.add(inner, value) if accumulate else value
    moved = lax.dynamic_update_slice(moved, lax.reshape(inner, sizes), starts)
    return lax.transpose(moved, [order.index(d) for d in range(len(order))])


def _set_masked(x, value, arrays, spec, accumulate: bool):
    whole = all(e[0] == "mask" or (e[0] == "slice" and e[3] == 1) for e in spec) and len(arrays) == 1
    basic = _Basic(x.shape, spec)
    at = next((i for i, e in enumerate(spec) if e[0] == "mask"), 0)
    width = spec[at][1]
    value = cast(value, x.dtype)
    tail = x.ndim - at - width
    shape = np.shape(value)
    lead = len(shape) - tail - 1
    if not (whole and basic.whole) or (lead >= 0 and shape[lead] != 1) or lead > at:
        fail(
            "value",
            "x[mask] = value",
            f"value {shape}, x {x.shape}",
            "a mask is written alone, with a value that has one element for all True places",
            "use expand_masks first",
        )
    if lead >= 0 and width != 1:  # the one element of the masked dims stands for all of them
        value = lax.reshape(value, shape[:lead] + (1,) * width + shape[lead + 1 :])
    mask = lax.broadcast_in_dim(arrays[0], x.shape, tuple(range(at, at + width)))
    value = broadcast_to(value, x.shape)
    return lax.select_n(mask, x, lax.add(x, value) if accumulate else value)


def region_shape(shape, spec, index_shapes=()) -> tuple[int, ...]:
    """Return the shape of ``x[...]`` without computing it."""
    basic = _Basic(shape, spec)
    kept = [n for d, n in enumerate(basic.shape) if d not in basic.pick_dims]
    arrays = [s for s, k in zip(index_shapes, basic.kinds) if k == "array"]
    if not arrays:
        return tuple(kept)
    dims = [d - sum(p < d for p in basic.pick_dims) for d in basic.array_dims]
    joint = joint_shape(*arrays)
    at = dims[0] if dims == list(range(dims[0], dims[0] + len(dims))) else 0
    others = [n for d, n in enumerate(kept) if d not in dims]
    return (*others[:at], *joint, *others[at:])
