"""Rare operators and protocols: shifts of numbers, DLPack, NumPy's wrapping, device queries."""

from __future__ import annotations

import ctypes

import jax
import numpy as np

from sbpjax._core.tensor.creation.from_data import tensor
from sbpjax._core.tensor.handle.tensor import Tensor, wrap
from sbpjax._core.tensor.storage.payload import payload, refresh_tensor
from sbpjax.errors import MixedTensorError


def _one_device(x: Tensor, operation: str):
    refresh_tensor(x)
    if x.layout is not None:
        seen = f"a global tensor on {x.placement!r}"
        raise MixedTensorError(operation, seen, "DLPack hands one device's memory on", "x.to_local()")
    return payload(x)


def dlpack(self: Tensor, **options):
    """Export the memory without a copy; see the array API standard. A write in place here does not change it."""
    return _one_device(self, "x.__dlpack__()").__dlpack__(**options)


def dlpack_device(self: Tensor) -> tuple:
    return _one_device(self, "x.__dlpack_device__()").__dlpack_device__()


class _Capsule:
    """A DLPack capsule with the array interface that JAX requires."""

    def __init__(self, capsule) -> None:
        self._capsule = capsule

    def __dlpack__(self, **options):
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return the device of the capsule: its type and index follow the data pointer of the DLTensor."""
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        address = pointer(self._capsule, b"dltensor") + ctypes.sizeof(ctypes.c_void_p)
        kind, index = (ctypes.c_int32 * 2).from_address(address)
        return kind, index


def from_dlpack(ext_tensor, *, device=None, copy: bool | None = None) -> Tensor:
    """Return a tensor over the memory of an array of another library, without a copy where JAX can read it in place.

    Args:
        ext_tensor: the array, or the capsule of one, e.g. from `torch.utils.dlpack.to_dlpack`; it is used up.
        device: the target device; unchanged by default.
        copy: whether to copy; by default only where JAX cannot read the memory in place.

    The memory is never written here: a write in place makes a new array.
    """
    if type(ext_tensor).__name__ == "PyCapsule":
        ext_tensor = _Capsule(ext_tensor)
    try:
        array = jax.dlpack.from_dlpack(ext_tensor, copy=copy)
    except jax.errors.JaxRuntimeError as error:
        # JAX 0.10 to 0.12 reads memory only if it has no gaps, repeated or reversed elements.
        if "strid" not in str(error) or copy is False or not _on_host(ext_tensor):
            raise
        array = jax.device_put(_compact(ext_tensor))
    found = wrap(array)
    return found if device is None else found.to(device)


def _on_host(ext_tensor) -> bool:
    return ext_tensor.__dlpack_device__()[0] == 1


def _compact(ext_tensor):
    """Return a copy without gaps of an array with any strides."""
    try:
        return np.array(np.from_dlpack(ext_tensor))
    except (RuntimeError, BufferError):  # a dtype that NumPy has not, as bfloat16
        return jax.dlpack.from_dlpack(ext_tensor.contiguous())


def to_dlpack(tensor: Tensor):
    """Return the DLPack capsule of a tensor."""
    return dlpack(tensor)


def array_wrap(self: Tensor, array, context=None, return_scalar: bool = False) -> Tensor:
    return tensor(np.asarray(array))


def is_on(self: Tensor, kind: str) -> bool:
    """Return whether the tensor is local, and on a device of a kind."""
    return self.layout is None and not self.is_meta and self.device.type == kind
