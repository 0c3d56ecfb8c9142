"""Conversions by `to`, `cpu`, `cuda`, `type` etc.; deep copies and pickling of tensors."""

from __future__ import annotations

import jax
import numpy as np

from sbpjax._core.compiler import conversions
from sbpjax._core.runtime.ambient_mesh import hide_mesh
from sbpjax._core.tensor.creation.convert import _record, fetch_to_host
from sbpjax._core.tensor.dispatch import abstract
from sbpjax._core.tensor.handle import dtype as dtypes
from sbpjax._core.tensor.handle.device import _PLATFORM, PlacementDevice
from sbpjax._core.tensor.handle.device import device as Device
from sbpjax._core.tensor.handle.tensor import Tensor, wrap, wrap_any
from sbpjax._core.tensor.storage.payload import is_array, is_traced, payload, refresh_tensor, share_storage_of
from sbpjax.errors import MixedTensorError, OpTypeError
from sbpjax.sbp import placement

from .elementwise import clone, to_dtype


def to_device(self: Tensor, target) -> Tensor:
    """Return the tensor on another device; itself if it is on it."""
    refresh_tensor(self)
    target = Device(target)
    if isinstance(target, PlacementDevice):
        same = self.layout is not None and len(self.layout.placement.hierarchy) == len(target.placement.hierarchy)
        return self.to_global(target.placement, None if same else target.sbp)
    if target.type == "meta":
        return self if self.is_meta else _without_data(self)
    if self.layout is not None:
        if target.index is not None:
            raise MixedTensorError(
                f"x.to({str(target)!r})",
                f"a global tensor on {self.placement!r}",
                "a global tensor can only move to a bare device type, not to one device",
                "x.to_global(placement, sbp), or x.to_local().to(device)",
            )
        if _PLATFORM.get(target.type) == _PLATFORM[self.placement.type]:
            return self
        return self.to_global(placement(target.type, self.placement.ranks), self.sbp)
    if self.is_meta:
        raise abstract.missing_data_error(f"x.to({str(target)!r})", self)
    if not is_array(self):
        return self
    where = target.jax()
    (here,) = payload(self).devices()
    if here == where:
        return self

    def back(grad: Tensor) -> Tensor:
        return wrap(jax.device_put(payload(grad), here))

    return _record(self, wrap(jax.device_put(payload(self), where)), back)


def _without_data(x: Tensor) -> Tensor:
    if not isinstance(payload(x), jax.Array) or is_traced(x):
        return x
    layout = x.layout
    placement, sbp = (None, None) if layout is None else (layout.placement, layout.sbp)
    return abstract.empty(tuple(x.shape), x.dtype.np, placement, sbp)


def to(
    self: Tensor,
    *args,
    dtype=None,
    device=None,
    copy: bool = False,
    non_blocking: bool = False,
    memory_format=None,
    other=None,
) -> Tensor:
    """Return the tensor with another dtype, on another device, or with those of another tensor.

    Args:
        self: the tensor.
        args: a dtype, a device or both, or another tensor.
        dtype: the dtype.
        device: the device.
        copy: return a copy even if nothing changes.
        non_blocking: accepted; transfers never block.
        memory_format: accepted; there is one format.
        other: the other tensor, by name.

    Returns:
        The same shape; splits stay, a partial sum is reduced first where it would be rounded. The tensor itself if
        nothing changes.

    Raises:
        OpTypeError: an argument that is neither a dtype, a device nor a tensor.
        PlacementError: there is no such device.
        MixedTensorError: a global tensor and a single device.

    Example:
        >>> flow.tensor([1.5, 2.5]).to(flow.int32)
        tensor([1, 2], dtype=sbpjax.int32)
    """
    if other is not None:
        args = (other, *args)
    if len(args) == 1 and isinstance(args[0], type):
        if issubclass(args[0], Tensor):  # the tensor of a graph's proxy
            return self
        if hasattr(args[0], "of_tensor"):  # nn.graph.GraphTensor: the records of graphs about this tensor
            return args[0].of_tensor(self)
    for value in args:
        if isinstance(value, Tensor):
            dtype = value.dtype
            device = value.device if value.layout is None else None
            if value.layout is not None:
                out = to_dtype(self, dtype)
                return out if out.layout is value.layout else out.to_global(value.placement, value.sbp)
        elif isinstance(value, (dtypes.dtype, np.dtype)) or value in (float, int, bool):
            dtype = value
        elif isinstance(value, bool):
            continue
        elif isinstance(value, (str, int, Device)):
            device = value
        elif value is not None:
            raise OpTypeError(
                "x.to(...)", f"{value!r}", "to takes a dtype, a device or a tensor", "x.to(sbpjax.float32)"
            )
    out = self
    if device is not None:
        out = to_device(out, device)
    if dtype is not None:
        out = to_dtype(out, dtype)
    return clone(out) if copy and out is self else out


def type_(self: Tensor, dtype=None, non_blocking: bool = False):
    """Return the tensor in another dtype (a name such as ``"FloatTensor"`` will do); without one, its type's name."""
    if dtype is None:
        return f"sbpjax.{_TYPE_NAMES.get(self.dtype.name, self.dtype.name.capitalize())}Tensor"
    name = dtype if isinstance(dtype, str) else getattr(dtype, "__name__", "")
    kind = name.rsplit(".", 1)[-1].removesuffix("Tensor")
    return to_dtype(self, _KINDS[kind] if name.endswith("Tensor") and kind in _KINDS else dtype)


_TYPE_NAMES = {
    "float32": "Float", "float64": "Double", "float16": "Half", "bfloat16": "BFloat16", "int64": "Long", "int32": "Int",
    "int16": "Short", "int8": "Char", "uint8": "Byte", "bool": "Bool", "complex64": "ComplexFloat",
    "complex128": "ComplexDouble",
}  # fmt: skip
_KINDS = {kind: name for name, kind in _TYPE_NAMES.items()}


def cpu(self: Tensor, memory_format=None) -> Tensor:
    """Return the tensor on the CPU; ``memory_format`` is accepted, there is one.

    Args:
        memory_format: accepted; there is one format.

    Returns:
        The same shape and sbp.

    Example:
        >>> flow.ones(2).cpu().device
        device(type='cpu', index=0)
    """
    return to_device(self, "cpu")


def cuda(self: Tensor, device=None, non_blocking: bool = False, memory_format=None) -> Tensor:
    """Return the tensor on a GPU; ``non_blocking`` and ``memory_format`` are accepted, as by `to`."""
    return to_device(self, "cuda" if device is None else Device("cuda", device))


def deepcopy(self: Tensor, memo: dict) -> Tensor:
    """Return a copy; of the result of an op a leaf off the tape, as in OneFlow, where PyTorch raises."""
    if not self.is_leaf:
        refresh_tensor(self)
        memo[id(self)] = copied = wrap_any(payload(self), self.layout)
        return copied
    out = Tensor.__new__(self.__class__)
    share_storage_of(out, wrap_any(payload(self), self.layout))
    memo[id(self)] = out
    if self.requires_grad:
        out.requires_grad_()
    if self.grad is not None:
        out.grad = self.grad.__deepcopy__(memo)
    out.__dict__.update(self.__dict__)
    return out


@hide_mesh
def _rebuild(cls, array, where, requires_grad: bool):
    out = Tensor.__new__(cls)
    value = wrap(jax.numpy.asarray(array)) if where is None else wrap_any(*conversions.from_logical(array, *where))
    share_storage_of(out, value)
    if requires_grad:
        out.requires_grad_()
    return out


def reduce(self: Tensor, protocol):
    """Return the parts of a pickle: the array on the host, and the layout."""
    where = None if self.layout is None else (self.placement, self.sbp)
    return _rebuild, (self.__class__, fetch_to_host(self), where, self.requires_grad)


def type_as(self: Tensor, other: Tensor) -> Tensor:
    """Return the tensor in the dtype of another one.

    Returns:
        The same shape; splits stay.

    Example:
        >>> flow.tensor([1, 2]).type_as(flow.ones(1))
        tensor([1., 2.])
    """
    return to_dtype(self, other.dtype)


def is_signed(self: Tensor) -> bool:
    """Return whether the dtype has negative numbers."""
    return self.dtype.is_signed


def get_device(self: Tensor) -> int:
    """Return the index of the device; -1 on the CPU."""
    return -1 if self.device.type == "cpu" else self.device.index or 0


def caster(name: str, dtype):
    """Return the method that converts to a dtype."""

    def cast(self, memory_format=None):
        return to_dtype(self, dtype)

    cast.__name__ = cast.__qualname__ = name
    cast.__doc__ = f"Return the tensor in {dtype!r}."
    return cast
