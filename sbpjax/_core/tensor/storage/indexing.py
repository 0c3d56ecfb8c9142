"""Indexing with PyTorch's semantics: ``x[...]`` and ``x[...] = value``.

Integers, slices, ``None`` and ``...`` make a view (*basic* indexing). Tensors, lists and arrays of integers or bools
gather elements into a new tensor (*advanced* indexing, `_core.ops.shapes.index`). A bool mask is turned into integer
indices on the host first, since the size of its result depends on the data; writing one number through a mask needs
no sizes and stays on the device.
"""

from __future__ import annotations

import numpy as np

from sbpjax._core.ops.shapes import index as _index
from sbpjax.errors import MixedTensorError, OpIndexError, OpTypeError, OpValueError
from sbpjax.sbp import broadcast

from ..calls.bounds import find_out_of_bounds
from ..creation.from_data import tensor
from ..creation.number_range import check_fits
from ..dispatch import dispatch
from ..dispatch.op import op_of
from ..handle.plain_values import to_python_value
from ..handle.tensor import TRACED, Tensor
from . import splitting, view_steps, views
from .inplace import check_writable, inplace, set_part
from .storage import _starts, _static, steps_of


def _is_basic(items: tuple) -> bool:
    for i in items:
        if i is None or i is Ellipsis or isinstance(i, slice):
            continue
        if isinstance(i, (int, np.integer)) and not isinstance(i, (bool, np.bool_)):
            continue
        return False
    return True


def _items(item) -> tuple:
    """Return the indices of ``x[item]``; a short list of more than numbers stands for a tuple, as in PyTorch."""
    if isinstance(item, tuple):
        return item
    if isinstance(item, list) and len(item) < _SHORT:
        if any(i is None or i is Ellipsis or isinstance(i, _NOT_NUMBERS) for i in item):
            return tuple(item)
    return (item,)


# The number of dims that NumPy once had, and PyTorch still goes by.
_SHORT = 32
_NOT_NUMBERS = (list, tuple, range, slice, np.ndarray, Tensor)


# ---------------------------------------------------------------------------------------------------------------- basic


def _expand_ellipsis(items: tuple, shape) -> list:
    """Return one entry per dim (and None for each new one), with the ellipsis written out."""
    used = sum(i is not None and i is not Ellipsis for i in items)
    if used > len(shape) or sum(i is Ellipsis for i in items) > 1:
        raise OpIndexError(
            f"indexing with {len(items)} indices",
            f"a tensor of shape {list(shape)}",
            f"too many indices for tensor of dimension {len(shape)}",
            f"use at most {len(shape)} indices and one ellipsis",
        )
    missing = [slice(None)] * (len(shape) - used)
    where = next((k for k, i in enumerate(items) if i is Ellipsis), len(items))
    return [*items[:where], *missing, *items[where + 1 :]]


def _slice_entry(item: slice, n: int):
    """Return the entry of a spec (see `view_steps.index`) for a slice of a dim of size ``n``."""
    if item == slice(None):
        return None
    start, stop, step = (None if v is None else int(v) for v in (item.start, item.stop, item.step))
    step = 1 if step is None else step
    if step <= 0:
        raise OpValueError(
            "slicing a tensor", f"slice step {step}", "Step must be greater than zero.", "x.flip(dim) reverses a dim"
        )
    start, stop, _ = slice(start, stop, step).indices(n)
    size = max(0, -(-(stop - start) // step))
    # ``x[0:n]`` is ``x[:]``: the same step and the same program.
    if size == n and step == 1:
        return None
    return (size, step, start)


def _basic(shape, entries: list) -> tuple[tuple, list[int]]:
    """Return the spec over the dims of ``x`` and the positions of new dims in the result."""
    spec, new, position, dim = [], [], 0, 0
    for item in entries:
        if item is None:
            new.append(position)
            position += 1
        elif isinstance(item, slice):
            spec.append(_slice_entry(item, shape[dim]))
            position += 1
            dim += 1
        else:
            spec.append((None, 1, views.checked_index(item, shape[dim], dim)))
            dim += 1
    return tuple(spec), new


def _basic_view(x: Tensor, entries: list) -> Tensor:
    spec, new = _basic(x.shape, entries)
    if not new:
        return views.select_part(x, spec)
    out = views.select_part(x, spec) if any(s is not None for s in spec) else x
    for position in new:
        out = views.unsqueeze(out, position)
    return out


def getitem(self: Tensor, item) -> Tensor:
    """Return the elements that an index names: a view for basic indexing, else a new tensor."""
    if item.__class__ is int:
        shape = self.shape
        if not shape:
            raise OpIndexError(
                f"x[{item}]", "a 0-d tensor", "invalid index of a 0-dim tensor", "x.item() gives its Python number"
            )
        index = views.checked_index(item, shape[0], 0)
        if not self._kind:
            # The index is an input of the program: ``for i in range(n): x[i]`` compiles once.
            return _row(self, index, len(shape))
        return views.select_part(self, ((None, 1, index), *[None] * (len(shape) - 1)))
    items = _items(item)
    if not _is_basic(items):
        items = _items(to_python_value(item))
    if _is_basic(items):
        return _basic_view(self, _expand_ellipsis(items, self.shape))
    spec, arrays = _resolve_index(self, items)
    if any(entry[0] == "mask" for entry in spec):
        spec, arrays = _index.expand_masks(spec, arrays, lambda mask: _mask_to_indices(mask, self))
    return dispatch.run(op_of(_index.getitem, (("spec", spec),)), (self, *arrays))


_rows: dict = {}


def _row(x: Tensor, index: int, ndim: int) -> Tensor:
    """Return ``x[index]`` of a plain tensor: the program depends on the number of dims alone."""
    found = _rows.get(ndim)
    if found is None:
        static = (("spec", ((None, 1, None), *[None] * (ndim - 1))),)
        found = _rows[ndim] = op_of(view_steps.index, static), static
    op, static = found
    return views.link_view(x, dispatch.binary(op, x, index), (view_steps.index, static, (index,)))


def setitem(self: Tensor, item, value) -> None:
    """Write a value, broadcast, to the elements that an index names."""
    value = _value(self, value)
    check_fits("x[...] = value", value, self.dtype.np)
    items = _items(item)
    if not _is_basic(items):
        items = _items(to_python_value(item))
    if _is_basic(items):
        _write_part(self, _expand_ellipsis(items, self.shape), value)
        return
    _write_at(self, items, value, False)


def _value(x: Tensor, value):
    if not isinstance(value, (Tensor, float, int)):
        value = to_python_value(value)
    if isinstance(value, (list, tuple, np.ndarray)):
        value = with_layout_of(tensor(value), x)  # the same in every process, as a number is
    if isinstance(value, Tensor) and x._layout is not None and value._fresh()._layout is None and value.ndim:
        raise MixedTensorError(
            "x[...] = value",
            f"x: global on {x.placement!r}; value: local {list(value.shape)}",
            "assigning into a slice of a global tensor needs a global value (or a number)",
            f"value.to_global({x.placement!r}, sbp)",
        )
    return value


def _write_part(x: Tensor, entries: list, value) -> None:
    # A view that shows every element once can be written.
    if any(fn is view_steps.expand for fn, _, _ in steps_of(x)):
        view = _basic_view(x, entries)
        check_writable(view, "x[...] = value")
        view.copy_(value) if isinstance(value, Tensor) else view.fill_(value)
        return
    spec, new = _basic(x.shape, entries)
    # ``x[None, 0] = v``: where the value has dims, new dims count when it is broadcast; a number does not see them.
    if new and isinstance(value, Tensor) and value.ndim:
        x = _basic_view(x, entries)
        check_writable(x, "x[...] = value")
        spec = (None,) * x.ndim
    starts: tuple = ()
    if all(s is None for s in spec):
        # ``x[:] = v``: the whole is written, without a slice in between.
        step = (view_steps.alias, (), ())
    else:
        if not x._kind:
            starts = tuple(s[2] for s in spec if s is not None)
            spec = tuple(None if s is None else (s[0], s[1], None) for s in spec)
        step = (view_steps.index, (("spec", spec),), starts)
    inplace(x, op_of(set_part, _static((step,))), (value, *_starts((step,))))


# ------------------------------------------------------------------------------------------------------------- advanced


def _resolve_index(x: Tensor, items: tuple) -> tuple[tuple, list]:
    """Return the spec of an index and its tensors, on the placement of ``x``."""
    items = tuple(_as_index(i) for i in items)
    try:
        spec, arrays = _index.parse(items, tuple(x.shape))
    except TypeError as error:
        raise error if isinstance(error, OpTypeError) else OpTypeError(str(error)) from None
    if any(isinstance(a, np.ndarray) and a.dtype == bool for a in arrays) and x._kind == TRACED:
        # Lists and arrays are read here; after the next line they would be part of the trace.
        places = lambda mask: [*np.nonzero(mask)] if isinstance(mask, np.ndarray) else _mask_to_indices(mask, x)  # noqa: E731
        spec, arrays = _index.expand_masks(spec, arrays, places)
    arrays = [with_layout_of(a, x) for a in arrays]
    _check_bounds(spec, arrays, x.shape)
    return spec, arrays


def _as_index(item):
    """Return an entry as `parse` takes it: lists as arrays, bytes as masks."""
    if isinstance(item, (list, tuple)):
        if any(isinstance(i, Tensor) for i in item):
            item = [i.numpy() if isinstance(i, Tensor) else i for i in item]
        item = np.asarray(item) if len(item) else np.zeros(0, np.int64)
        item = item.astype(np.int64) if item.dtype.kind in "iu" else item
    if isinstance(item, (Tensor, np.ndarray)):
        kind = item.dtype.np if isinstance(item, Tensor) else item.dtype
        # PyTorch's old masks: bytes are bools, unlike all other integers.
        if kind == np.uint8:
            return item != 0
        # A 0-d mask has no dim that it would select from: it is the bool itself, where its value is known.
        if kind == np.bool_ and item.ndim == 0 and getattr(item, "_kind", None) != TRACED:
            return bool(item)
        if kind not in (np.int64, np.int32, np.bool_):
            raise OpIndexError(
                "indexing a tensor",
                f"an index of dtype {kind}",
                "tensors used as indices must be long, int, byte or bool tensors",
                "index.long()",
            )
    return item


def with_layout_of(index, x: Tensor) -> Tensor:
    """Return an index tensor on the placement of ``x``."""
    index = index if isinstance(index, Tensor) else tensor(np.asarray(index))
    layout = x._layout
    if layout is not None and index._fresh()._layout is None and index.ndim:
        index = index.to_global(layout.placement, (broadcast,) * len(layout.placement.hierarchy))
    return index


def _check_bounds(spec: tuple, arrays: list, shape) -> None:
    """Raise if an index tensor on the CPU names a place outside its dim; those on other devices are not read."""
    dim, rest = 0, iter(arrays)
    for entry in spec:
        kind = entry[0]
        if kind in ("array", "pick"):
            index = next(rest)
            bad = find_out_of_bounds(index, -shape[dim], shape[dim])
            if bad is not None:
                views.checked_index(bad, shape[dim], dim)
        elif kind == "mask":
            next(rest)
        dim += entry[1] if kind == "mask" else kind not in ("new", "none")


def _mask_to_indices(mask: Tensor, x: Tensor) -> list[Tensor]:
    """Return the indices where a mask holds, one vector per dim; the mask is read on the host."""
    found = np.nonzero(mask.numpy()) if mask.ndim else (np.zeros(int(mask.item()), np.int64),)
    return [with_layout_of(part.astype(np.int64), x) for part in found]


def _write_at(x: Tensor, items: tuple, value, accumulate: bool) -> None:
    spec, arrays = _resolve_index(x, items)
    masks = [entry for entry in spec if entry[0] == "mask"]
    if masks:
        # A number through one mask is a `where`: no sizes, hence no read of the data, and it can be compiled.
        alone = len(masks) == 1 and all(e == ("slice", 0, n, 1) for e, n in _entries_without_masks(spec, x.shape))
        number = not isinstance(value, Tensor) or value.ndim == 0
        if not (alone and number and masks[0][1] > 0):
            spec, arrays = _index.expand_masks(spec, arrays, lambda mask: _mask_to_indices(mask, x))
    op = op_of(_index.setitem, (("spec", spec), ("accumulate", accumulate)))
    inplace(x, op, (value, *arrays))


def _entries_without_masks(spec: tuple, shape) -> list:
    """Return the entries other than masks, each with the size of its dim."""
    found, dim = [], 0
    for entry in spec:
        if entry[0] == "mask":
            dim += entry[1]
        else:
            found.append((entry, shape[dim] if dim < len(shape) else 0))
            dim += entry[0] not in ("new", "none")
    return found


def index_put_(self: Tensor, indices, values, accumulate: bool = False) -> Tensor:
    """Write (or add) values to the elements that a tuple of index tensors names."""
    if isinstance(values, Tensor) and values.dtype != self.dtype:
        seen = f"{values.dtype.name} values for a {self.dtype.name} tensor"
        rule = "Index put requires the source and destination dtypes match"
        raise OpTypeError("x.index_put_(indices, values)", seen, rule, "values.to(x.dtype)")
    check_fits("x.index_put_(indices, value)", values, self.dtype.np)
    _write_at(self, tuple(indices), _value(self, values), accumulate)
    return self


def index_put(self: Tensor, indices: tuple | list, values, accumulate: bool = False) -> Tensor:
    """Return a copy with values written (or added) to the elements that a tuple of index tensors names."""
    return index_put_(self.clone(), indices, values, accumulate)


def iterate(self: Tensor):
    """Return an iterator over the parts along the first dim.

    Raises:
        OpTypeError: the tensor has no dims.
    """
    if not self.ndim:
        raise OpTypeError(
            "iterating over a tensor", "a 0-d tensor", "iteration over a 0-d tensor", "x.item() gives its number"
        )
    return iter(splitting.unbind(self, 0))


def contains(self: Tensor, element) -> bool:
    """Return whether an element is equal."""
    return bool((self == element).any())
