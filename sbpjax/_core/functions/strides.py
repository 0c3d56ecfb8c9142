"""Strided views and memory access: `as_strided`, `data_ptr`, `set_`, `resize_`, `storage`.

A view has the strides that it would have in one piece of row-major memory (`view_steps.STRIDES`), so `as_strided` can
show any part of that memory: it is a view of the storage's root, from any view of it. Worked case: of
``x = arange(6)``, ``x[2:].as_strided((2, 2), (2, 1))`` shows ``[[0, 1], [2, 3]]``: strides and offset count from the
storage's first element. Writes go through; where elements overlap, a write in place is an error as in PyTorch.
"""

from __future__ import annotations

import math
import weakref

import jax
import numpy as np

from sbpjax._core import functions
from sbpjax._core.tensor.creation.convert import fetch_to_host
from sbpjax._core.tensor.creation.creation import empty
from sbpjax._core.tensor.dispatch import dispatch
from sbpjax._core.tensor.dispatch.op import op_of
from sbpjax._core.tensor.dispatch.scalars import hashable
from sbpjax._core.tensor.handle.mode import mode
from sbpjax._core.tensor.handle.tensor import Tensor
from sbpjax._core.tensor.storage import view_steps, views
from sbpjax._core.tensor.storage.inplace import check_writable
from sbpjax._core.tensor.storage.payload import attach_to_node, edge_of, payload, put
from sbpjax._core.tensor.storage.storage import cell_of, root_of, set_data, steps_of
from sbpjax.errors import OpError, OpTypeError


def storage_offset(self: Tensor) -> int:
    """Return where the view starts in its storage, in elements."""
    offset = 0
    chain = steps_of(self)
    if not chain:
        return 0
    shape = tuple(root_of(self).shape)
    strides = view_steps.contiguous_strides(shape)
    for fn, static, starts in chain:
        if fn is view_steps.index:
            given = iter(starts)
            for k, s in zip(strides, dict(static)["spec"], strict=True):
                if s is not None:
                    offset += k * (next(given) if s[2] is None else s[2])
        elif fn is view_steps.diagonal:
            options = dict(static)
            shift, d1, d2 = options["offset"], options["dim1"], options["dim2"]
            offset += shift * strides[d2] if shift > 0 else -shift * strides[d1]
        elif fn is view_steps.read_strided:
            offset = dict(static)["offset"]
        elif fn in (view_steps.real_part, view_steps.imag_part, view_steps.as_real):
            offset = 2 * offset + (fn is view_steps.imag_part)
        elif fn is view_steps.as_complex:
            offset //= 2
        shape, strides = view_steps.STRIDES[fn](shape, strides, *starts, **dict(static))
    return offset


def _check_view(operation: str, x: Tensor, size, stride, offset) -> tuple:
    size, stride = tuple(hashable(tuple(size))), tuple(hashable(tuple(stride)))
    offset = storage_offset(x) if offset is None else int(offset)
    if len(size) != len(stride):
        rule = "mismatch in length of strides and shape"
        raise OpError(operation, f"size {size}, stride {stride}", rule, "one stride for each size")
    if min((*size, *stride, offset), default=0) < 0:
        rule = "as_strided: Negative sizes, strides and offsets are not supported"
        raise OpError(operation, f"size {size}, stride {stride}, offset {offset}", rule, "x.flip(...)")
    count = math.prod(root_of(x).shape)
    last = offset + sum((n - 1) * k for n, k in zip(size, stride, strict=True)) + 1
    if math.prod(size) and last > count:
        rule = f"sizes and strides reach element {last - 1}, out of bounds for storage of size {count}"
        raise OpError(operation, f"a storage of {count} elements", rule, "a smaller size or offset")
    return (("size", size), ("stride", stride), ("offset", offset))


def as_strided(
    input: Tensor, size: tuple[int, ...], stride: tuple[int, ...], storage_offset: int | None = None
) -> Tensor:
    """Return a view of the storage with the sizes, strides and offset given, in elements."""
    static = _check_view("as_strided(x, ...)", input, size, stride, storage_offset)
    return views.view_of(root_of(input), view_steps.read_strided, static)


def as_strided_(self: Tensor, size, stride, storage_offset: int | None = None) -> Tensor:
    """Make this tensor show its storage with the sizes, strides and offset given."""
    check_writable(self, "as_strided_")
    shown = as_strided(self, size, stride, storage_offset)
    edge = edge_of(shown)
    set_data(self, shown.detach())
    return attach_to_node(self, *edge) if mode.grad else self


def as_strided_copy(
    input: Tensor, size: tuple[int, ...], stride: tuple[int, ...], storage_offset: int | None = None
) -> Tensor:
    """Return a copy of `as_strided`."""
    return as_strided(input, size, stride, storage_offset).clone()


def as_strided_scatter(
    input: Tensor, src: Tensor, size: tuple[int, ...], stride: tuple[int, ...], storage_offset: int | None = None
) -> Tensor:
    """Return a copy with ``src`` written into the part that `as_strided` selects."""
    static = _check_view("as_strided_scatter(x, ...)", input, size, stride, storage_offset or 0)
    return dispatch.run(op_of(_scatter_strided, static), (input, src))


def _scatter_strided(x, value, /, size, stride, offset):
    return view_steps._put_strided(x, value.astype(x.dtype), size, stride, offset)


def empty_strided(
    size, stride, *, dtype=None, layout=None, device=None, requires_grad: bool = False, pin_memory: bool = False
) -> Tensor:
    """Return an uninitialised tensor with the sizes and strides given."""
    size, stride = tuple(size), tuple(stride)
    count = 1 + sum((n - 1) * k for n, k in zip(size, stride, strict=True)) if math.prod(size) else 0
    memory = empty(count, dtype=dtype, device=device)
    if stride == view_steps.contiguous_strides(size):
        out = memory.reshape(size)
    else:
        out = as_strided(memory, size, stride)
    out = out.detach()
    return out.requires_grad_() if requires_grad else out


def new_empty_strided(self: Tensor, size, stride, *, dtype=None, device=None, requires_grad: bool = False) -> Tensor:
    """Return `empty_strided` with the dtype of this tensor unless one is given."""
    dtype = self.dtype if dtype is None else dtype
    return empty_strided(size, stride, dtype=dtype, device=device, requires_grad=requires_grad)


def empty_permuted(size, physical_layout, *, dtype=None, device=None, requires_grad: bool = False) -> Tensor:
    """Return an uninitialised tensor whose dims are in memory in the order given."""
    order = tuple(physical_layout)
    back = [order.index(d) for d in range(len(order))]
    out = empty(*[size[d] for d in order], dtype=dtype, device=device).permute(*back).detach()
    return out.requires_grad_() if requires_grad else out


# --------------------------------------------------------------------------------------------------------- in place


def contiguous_(self: Tensor) -> Tensor:
    """Make this tensor contiguous, with memory of its own if it is not."""
    if not self.is_contiguous():
        set_data(self, self.detach().clone())
    return self


def set_(self: Tensor, source=None, storage_offset: int = 0, size=None, stride=None) -> Tensor:
    """Make this tensor show another one's storage; without a source, an empty one."""
    if source is None:
        source = empty(0, dtype=self.dtype)
    source = getattr(source, "tensor", source)
    if not isinstance(source, Tensor):
        raise OpTypeError("x.set_(y)", f"a {type(source).__name__}", "y is a tensor or a storage", "x.set_(y)")
    if source.dtype != self.dtype:
        rule = f"Expected a Tensor of type {self.dtype!r} but got {source.dtype!r}"
        raise OpError("x.set_(y)", f"y of {source.dtype!r}", rule, "y.to(x.dtype)")
    target = source.detach()
    if size is not None:
        stride = view_steps.contiguous_strides(tuple(size)) if stride is None else stride
        target = as_strided(target, size, stride, storage_offset).detach()
    set_data(self, target)
    return self


def resize_(self: Tensor, *size, memory_format=None) -> Tensor:
    """Give this tensor another size; its elements stay, in row-major order, new ones are not initialised."""
    if self.requires_grad:
        rule = "cannot resize variables that require grad"
        raise OpError("x.resize_(...)", "a tensor that requires grad", rule, "x.detach().resize_(...)")
    shape = tuple(size[0]) if len(size) == 1 and isinstance(size[0], (tuple, list)) else tuple(size)
    root = root_of(self)
    flat = root.detach().reshape(-1)
    offset, count = storage_offset(self), math.prod(shape)
    if offset + count <= math.prod(root.shape):
        set_data(self, as_strided(root.detach(), shape, view_steps.contiguous_strides(shape), offset).detach())
        return self
    more = flat.new_zeros(offset + count - flat.shape[0])
    set_data(self, functions.cat([flat, more])[offset:].reshape(shape).detach())
    return self


def resize_as_(self: Tensor, other: Tensor, memory_format=None) -> Tensor:
    """Give this tensor the size of another one."""
    return resize_(self, *other.shape)


# ----------------------------------------------------------------------------------------------------------- memory


class Storage:
    """The memory that a tensor and its views share, with PyTorch's most used methods.

    Attributes:
        dtype: the element type.
        typed: whether lengths count elements, not bytes.
        cell: the object that tensors over the same memory share.
    """

    def __init__(self, x: Tensor, typed: bool) -> None:
        self._root = root_of(x).detach()
        self.dtype = x.dtype
        self.typed = typed
        self.cell = cell_of(x)

    @property
    def tensor(self) -> Tensor:
        """All of the memory as one vector."""
        return self._root.reshape(-1)

    def __len__(self) -> int:
        count = self._root.shape.numel()
        return count if self.typed else count * self.dtype.itemsize

    def __getitem__(self, index):
        found = self.tensor[index]
        return found.item() if isinstance(index, int) else found.tolist()

    def __setitem__(self, index, value) -> None:
        self.tensor[index] = value

    def __eq__(self, other) -> bool:
        return isinstance(other, Storage) and other.cell is self.cell

    def __hash__(self) -> int:
        return id(self.cell)

    def size(self) -> int:
        """Return the length, in elements of a typed storage and in bytes of an untyped one."""
        return len(self)

    def nbytes(self) -> int:
        """Return the number of bytes."""
        return self._root.shape.numel() * self.dtype.itemsize

    def data_ptr(self) -> int:
        """Return the address of the first byte; of a global tensor, that of this process's first shard."""
        return _address(self._root, _first_shard)

    def tolist(self) -> list:
        """Return the elements."""
        return self.tensor.tolist()

    def untyped(self) -> Storage:
        """Return this memory counted in bytes."""
        return Storage(self._root, False)


def storage(self: Tensor) -> Storage:
    """Return the memory that this tensor shares with its views, in elements."""
    return Storage(self, True)


def untyped_storage(self: Tensor) -> Storage:
    """Return the memory that this tensor shares with its views, in bytes."""
    return Storage(self, False)


def data_ptr(self: Tensor) -> int:
    """Return the address of the first element: that of its storage, plus the view's offset; 0 if it is empty.

    A write in place may move the storage: arrays of JAX do not change. A global tensor that is split or partial is
    nowhere in one piece: its storage is copied to the host's memory, gathered from all ranks, and the copy lives as
    long as a tensor whose address was read.
    """
    return _address(self, _gather_memory)


def _address(self: Tensor, of_parts) -> int:
    if not self.shape.numel() or self.is_meta:
        return 0
    root = root_of(self)
    layout = root.layout
    whole = layout is None or (layout.local_shape == layout.shape and not layout.partial_axes)
    start = _first_shard(self, root) if whole else of_parts(self, root)
    return start + storage_offset(self) * self.dtype.itemsize


def _first_shard(self: Tensor, root: Tensor) -> int:
    return payload(root).addressable_shards[0].data.unsafe_buffer_pointer()


class _Gathered:
    """A copy of an array in one piece of the host's memory. It holds the array, so that no other gets its id."""

    def __init__(self, root: Tensor) -> None:
        self.array = payload(root)
        self.values = np.ascontiguousarray(fetch_to_host(root))


_GATHERED: weakref.WeakValueDictionary[int, _Gathered] = weakref.WeakValueDictionary()


def _gather_memory(self: Tensor, root: Tensor) -> int:
    key = id(payload(root))
    found = _GATHERED.get(key)
    if found is None:
        found = _GATHERED[key] = _Gathered(root)
    self.__dict__["_gathered"] = found
    return found.values.ctypes.data


def is_set_to(self: Tensor, tensor: Tensor) -> bool:
    """Return whether another tensor shows the same storage with the same offset, size and strides."""
    same = cell_of(self) is cell_of(tensor) and self.shape == tensor.shape and self.stride() == tensor.stride()
    return same and storage_offset(self) == storage_offset(tensor)


def share_memory_(self: Tensor) -> Tensor:
    """Return the tensor; one process drives all devices, so there is no process to share memory with."""
    return self


def offload(self: Tensor) -> Tensor:
    """Move the elements to the host's memory until `load`; on the CPU they are there already."""
    if not is_offloaded(self):
        array = payload(self)
        if array.sharding.device_set and next(iter(array.sharding.device_set)).platform != "cpu":
            moved = jax.device_put(array, array.sharding.with_memory_kind("pinned_host"))
            put(self, moved, self.layout)
        self.__dict__["_offloaded"] = True
    return self


def load(self: Tensor) -> Tensor:
    """Bring offloaded elements back to the devices."""
    if is_offloaded(self):
        array = payload(self)
        if array.sharding.memory_kind == "pinned_host":
            put(self, jax.device_put(array, array.sharding.with_memory_kind("device")), self.layout)
        self.__dict__["_offloaded"] = False
    return self


def is_offloaded(self: Tensor) -> bool:
    """Return whether the elements were moved to the host's memory."""
    return self.__dict__.get("_offloaded", False)


def new(self: Tensor, *data, **options) -> Tensor:
    """Return a tensor of this one's dtype and device: empty, of a size, or with the content given."""
    if not data:
        return self.new_empty(0, **options)
    if isinstance(data[0], Tensor) or (
        isinstance(data[0], (list, tuple)) and not isinstance(data[0], type(self.shape))
    ):
        return self.new_tensor(data[0], **options)
    return self.new_empty(*(data[0] if isinstance(data[0], tuple) else data), **options)


def reject_deletion(self: Tensor, key) -> None:
    """Raise for ``del x[key]``.

    Raises:
        OpTypeError: always.
    """
    rule = "a tensor has no items to delete"
    raise OpTypeError("del x[key]", f"{self.dtype.name}{list(self.shape)}", rule, "x[mask] keeps some elements")


def set_state(self: Tensor, state) -> None:
    """Set attributes from a pickle; the elements came with `__reduce_ex__`."""
    for name, value in (state or {}).items():
        setattr(self, name, value)


def global_id(self: Tensor) -> int:
    """Return a number that no other living tensor has."""
    return id(self)


def check_meta_consistency(self: Tensor) -> None:
    """Do nothing: one process makes a global tensor, so its ranks cannot disagree on shape, dtype or sbp."""
