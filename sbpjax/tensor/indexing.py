"""Indexing: ``x[...]`` and ``x[...] = value``, with PyTorch's meaning.

Integers, slices, ``None`` and ``...`` make a view (*basic* indexing). Tensors, lists and arrays of integers or bools gather elements into a
new tensor (*advanced* indexing). A bool mask is turned into integer indices on the host first, since the size of its result depends
on the data; writing a number through a mask needs no sizes and stays on the device.

Advanced indexing, worked case: for ``x`` of shape (4, 5, 6), ``x[:, [0, 2], [1, 3]]`` picks the two columns ``x[:, 0, 1]`` and ``x[:, 2, 3]``,
shape (4, 2): the indices broadcast against each other, and stand where they stood if they were neighbours, else in front.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from sbpjax.errors import MixedTensorError, OpIndexError, OpTypeError, message

from . import dispatch, views
from .inplace import check_writable, inplace, set_part
from .op import op_of
from .steps import alias
from .storage import _starts, _static
from .tensor import Tensor


def _listed(item) -> tuple:
    if isinstance(item, tuple):
        return item
    return (item,)


def _is_basic(items: tuple) -> bool:
    for i in items:
        if i is None or i is Ellipsis or isinstance(i, slice):
            continue
        if isinstance(i, (int, np.integer)) and not isinstance(i, (bool, np.bool_)):
            continue
        return False
    return True


def _consumed(item) -> int:
    """Return how many dims of the tensor an index takes."""
    if item is None or isinstance(item, (bool, np.bool_)):
        return 0
    if isinstance(item, (Tensor, np.ndarray)) and _is_mask(item):
        return len(item.shape)
    return 1


def _is_mask(item) -> bool:
    return (item.dtype.np if isinstance(item, Tensor) else item.dtype) in (np.dtype(bool), np.dtype(np.uint8))


def _full(items: tuple, ndim: int, shape) -> list:
    """Return one entry per dim (and None for each new one), with the ellipsis written out."""
    used = sum(_consumed(i) for i in items if i is not Ellipsis)
    if used > ndim:
        raise OpIndexError(
            message(
                f"indexing with {len(items)} indices",
                f"a tensor of shape {list(shape)}",
                f"too many indices for tensor of dimension {ndim}",
                f"use at most {ndim} indices",
            )
        )
    where = next((k for k, i in enumerate(items) if i is Ellipsis), None)
    missing = [slice(None)] * (ndim - used)
    if where is None:
        return [*items, *missing]
    return [*items[:where], *missing, *[i for i in items[where + 1 :] if i is not Ellipsis]]


def _slice_entry(item: slice, n: int):
    """Return the entry of a spec (see `steps.index`) for a slice of a dim of size ``n``."""
    step = 1 if item.step is None else int(item.step)
    if step <= 0:
        raise _value_error(item)
    start, stop, _ = slice(
        None if item.start is None else int(item.start), None if item.stop is None else int(item.stop), step
    ).indices(n)
    size = max(0, -(-(stop - start) // step))
    if size == n and step == 1:
        return None
    return (size, step if size > 1 else 1, min(start, n - size) if size == 0 else start)


def _value_error(item) -> Exception:
    from sbpjax.errors import OpValueError

    return OpValueError(
        message(
            "slicing a tensor", f"slice step {item.step}", "step must be greater than zero", "x.flip(dim) reverses a dim"
        )
    )


def _basic(x: Tensor, entries: list) -> tuple[tuple, list[int]]:
    """Return the spec over the dims of ``x`` and the positions of new dims in the result."""
    spec, new, position, dim = [], [], 0, 0
    shape = x.shape
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
    spec, new = _basic(x, entries)
    if not new:
        return views.part(x, spec)
    out = views.part(x, spec) if any(s is not None for s in spec) else x
    for position in new:
        out = views.unsqueeze(out, position)
    return out


def getitem(self: Tensor, item) -> Tensor:
    """Return the elements that an index names: a view for basic indexing, else a new tensor."""
    if item.__class__ is int:
        shape = self.shape
        if not shape:
            raise OpIndexError(
                message(
                    f"x[{item}]", "a 0-d tensor", "invalid index of a 0-dim tensor", "x.item() gives its Python number"
                )
            )
        index = views.checked_index(item, shape[0], 0)
        return views.part(self, ((None, 1, index), *[None] * (len(shape) - 1)))
    items = _listed(item)
    if _is_basic(items):
        return _basic_view(self, _full(items, self.ndim, self.shape))
    base, arrays = _advanced(self, items)
    if not any(a is not None for a in arrays):
        return base
    return _gather(base, arrays)


def setitem(self: Tensor, item, value) -> None:
    """Write a value, broadcast, to the elements that an index names."""
    _check_value(self, value)
    if isinstance(value, (list, tuple)):
        value = np.asarray(value)
    if isinstance(value, np.ndarray):
        from .creation import tensor

        value = tensor(value)
    items = _listed(item)
    if _is_basic(items):
        _write_part(self, _full(items, self.ndim, self.shape), value)
        return
    if len(items) == 1 and _single_mask(self, items[0]) and not (isinstance(value, Tensor) and value.ndim):
        mask = _tensor(items[0], self)
        for _ in range(self.ndim - mask.ndim):
            mask = mask.unsqueeze(-1)
        inplace(self, op_of(_masked_set), (mask if mask.dtype.name == "bool" else mask != 0, value))
        return
    if all(_consumed(i) or i is Ellipsis for i in items) and not any(isinstance(i, (slice,)) and i != slice(None) for i in items) and not any(isinstance(i, (int, np.integer)) and not isinstance(i, bool) for i in items):  # fmt: skip
        base, arrays = self, _advanced(self, items)[1]
    else:
        base, arrays = _advanced(self, items)
    if not any(a is not None for a in arrays):
        _write_part(base, [slice(None)] * base.ndim, value)
        return
    _scatter(base, arrays, value, accumulate=False)


def _masked_set(x, mask, value, /):
    value = jnp.asarray(value)
    return jnp.where(mask, value.astype(x.dtype), x)


def _check_value(x: Tensor, value) -> None:
    if isinstance(value, Tensor) and x._layout is not None and value._fresh()._layout is None and value.ndim:
        raise MixedTensorError(
            message(
                "x[...] = value",
                f"x: global on {x.placement!r}; value: local {list(value.shape)}",
                "assigning into a slice of a global tensor needs a global value (or a number)",
                f"value.to_global({x.placement!r}, sbp)",
            )
        )


def _write_part(x: Tensor, entries: list, value) -> None:
    spec, new = _basic(x, entries)
    if new and isinstance(value, Tensor):
        x = _basic_view(x, entries)
        check_writable(x, "x[...] = value")
        spec = (None,) * x.ndim
    starts: tuple = ()
    if all(s is None for s in spec):
        step = (alias, (), ())
    else:
        from . import steps

        if x._plain:
            starts = tuple(s[2] for s in spec if s is not None)
            spec = tuple(None if s is None else (s[0], s[1], None) for s in spec)
        step = (steps.index, (("spec", spec),), starts)
    inplace(x, op_of(set_part, _static((step,))), (value, *_starts((step,))))


# --------------------------------------------------------------------------------------------------------------- advanced


def _tensor(item, like: Tensor) -> Tensor:
    """Return an index as a tensor that lies with ``like``."""
    from .creation import tensor

    if not isinstance(item, Tensor):
        try:
            item = tensor(np.asarray(item) if not isinstance(item, (list, tuple)) or item else np.zeros(0, np.int64))
        except TypeError:
            raise OpTypeError(
                message(
                    "indexing a tensor",
                    f"an index of type {type(item).__name__}",
                    "an index is an integer, slice, None, ..., or a tensor, list or array of integers or bools",
                    "x[0], x[1:3], x[[0, 2]]",
                )
            ) from None
    item._fresh()
    layout = like._layout
    if layout is not None and item._layout is None and item.ndim and layout.shape is not None:
        from sbpjax.sbp import broadcast

        item = item.to_global(layout.placement, (broadcast,) * len(layout.codes))
    kind = item.dtype
    if not (kind.np.kind in "iub"):
        raise OpIndexError(
            message(
                "indexing a tensor",
                f"an index of dtype {kind!r}",
                "tensors used as indices must be long, int, byte or bool tensors",
                "index.long()",
            )
        )
    return item


def _single_mask(x: Tensor, item) -> bool:
    return isinstance(item, (Tensor, np.ndarray)) and _is_mask(item) and tuple(item.shape) == tuple(x.shape[: len(item.shape)]) and len(item.shape) > 0  # fmt: skip


def _advanced(x: Tensor, items: tuple) -> tuple[Tensor, list]:
    """Apply the basic part of an index; return the tensor and, for each of its dims, an index tensor or None."""
    entries = _full(tuple(_listify(i) for i in items), x.ndim, x.shape)
    basic, advanced, dim = [], [], 0
    for item in entries:
        if item is None:
            basic.append(None)
            advanced.append(None)
        elif isinstance(item, slice):
            basic.append(item)
            advanced.append(None)
            dim += 1
        elif isinstance(item, (bool, np.bool_)):
            basic.append(None)
            advanced.append(_tensor(np.zeros(1 if item else 0, np.int64), x))
        elif isinstance(item, (int, np.integer)):
            index = views.checked_index(item, x.shape[dim], dim)
            basic.append(slice(None))
            advanced.append(_tensor(np.asarray(index, np.int64), x))
            dim += 1
        else:
            index = _tensor(item, x)
            if _is_mask(index):
                for part in _mask_to_indices(index, x, dim):
                    basic.append(slice(None))
                    advanced.append(part)
                    dim += 1
                if not index.ndim:
                    basic.append(None)
                    advanced.append(_tensor(np.zeros(1 if index.item() else 0, np.int64), x))
            else:
                basic.append(slice(None))
                advanced.append(_checked(index, x.shape[dim], dim))
                dim += 1
    plain = all(isinstance(b, slice) and b == slice(None) for b in basic)
    return (x if plain else _basic_view(x, basic)), advanced


def _listify(item):
    return np.asarray(item) if isinstance(item, (list, tuple)) and item and not any(isinstance(i, Tensor) for i in item) else item


def _checked(index: Tensor, size: int, dim: int) -> Tensor:
    """Raise on the host if an index on one device is outside its dim; on placements it is not read back."""
    if index._plain and index.shape.numel():
        host = np.asarray(index._array)
        low, high = int(host.min()), int(host.max())
        if low < -size or high >= size:
            bad = low if low < -size else high
            raise OpIndexError(
                message(
                    f"index {bad} on dim {dim}",
                    f"an index tensor of shape {list(index.shape)}",
                    f"index {bad} is out of bounds for dimension {dim} with size {size}",
                    f"use {-size} to {size - 1}",
                )
            )
    return index


def _mask_to_indices(mask: Tensor, x: Tensor, dim: int) -> list[Tensor]:
    shape = tuple(x.shape[dim : dim + mask.ndim])
    if tuple(mask.shape) != shape:
        bad = next(k for k, (a, b) in enumerate(zip(mask.shape, shape, strict=True)) if a != b)
        raise OpIndexError(
            message(
                "indexing with a mask",
                f"a mask of shape {list(mask.shape)} for dims of shape {list(shape)}",
                f"the shape of the mask {list(mask.shape)} at index {bad} does not match the shape of the indexed tensor "
                f"{list(x.shape)} at index {dim + bad}",
                "use a mask of the shape of the dims it indexes",
            )
        )
    return [_tensor(part.astype(np.int64), x) for part in np.nonzero(mask.numpy())]


def gather_nd(x, /, *indices, dims):
    """Return ``x`` indexed along ``dims`` by integer arrays that broadcast against each other."""
    where: list = [slice(None)] * x.ndim
    for d, i in zip(dims, indices, strict=True):
        where[d] = _wrapped(i, x.shape[d])
    return x.at[tuple(where)].get(mode="fill", wrap_negative_indices=False)


def _wrapped(i, n: int):
    i = i.astype(np.int64) if i.dtype != np.int64 else i
    return jnp.where(i < 0, i + n, i)


def scatter_nd(x, value, /, *indices, dims, accumulate):
    """Return ``x`` with ``value`` written (or added) where `gather_nd` would read."""
    where: list = [slice(None)] * x.ndim
    for d, i in zip(dims, indices, strict=True):
        where[d] = _wrapped(i, x.shape[d])
    value = jnp.asarray(value).astype(x.dtype)
    at = x.at[tuple(where)]
    return at.add(value, mode="drop") if accumulate else at.set(value, mode="drop")


def _gather(x: Tensor, arrays: list) -> Tensor:
    dims = tuple(d for d, a in enumerate(arrays) if a is not None)
    return dispatch.run(op_of(gather_nd, (("dims", dims),)), (x, *[arrays[d] for d in dims]))


def _scatter(x: Tensor, arrays: list, value, accumulate: bool) -> Tensor:
    dims = tuple(d for d, a in enumerate(arrays) if a is not None)
    op = op_of(scatter_nd, (("dims", dims), ("accumulate", accumulate)))
    return inplace(x, op, (value, *[arrays[d] for d in dims]))


def index_put_(self: Tensor, indices, values, accumulate: bool = False) -> Tensor:
    """Write (or add) values to the elements that a tuple of index tensors names."""
    base, arrays = _advanced(self, tuple(indices))
    _scatter(base, arrays, values, accumulate)
    return self


def index_put(self: Tensor, indices, values, accumulate: bool = False) -> Tensor:
    """Return a copy with values written (or added) to the elements that a tuple of index tensors names."""
    return index_put_(self.clone(), indices, values, accumulate)


def _iterate(self: Tensor):
    if not self.ndim:
        raise OpTypeError(
            message("iterating over a tensor", "a 0-d tensor", "iteration over a 0-d tensor", "x.item() gives its number")
        )
    return iter(views.unbind(self, 0))


def _contains(self: Tensor, element) -> bool:
    return bool((self == element).any())


def _attach() -> None:
    Tensor.__getitem__ = getitem
    Tensor.__setitem__ = setitem
    Tensor.__iter__ = _iterate
    Tensor.__contains__ = _contains
    Tensor.index_put_ = index_put_
    Tensor.index_put = index_put


_attach()
