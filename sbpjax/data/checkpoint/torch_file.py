"""Reader for PyTorch's ``.pt`` and ``.pth`` files of plain states that runs no code from them.

Such a file is a zip archive of a pickle and the raw bytes of each storage. `sbpjax.data.checkpoint.torch_pickle` runs
the pickle with the names of this file's table: a handful of functions that a state of tensors needs.

A storage is one member of the archive as a 1-D array; a tensor is a view of a storage, made only after its offset,
sizes and strides, as Python's integers, were found to stay within it. Sizes are compared with the archive's before
memory is allocated.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import IO, Any

import ml_dtypes
import numpy as np

from sbpjax._core.tensor.handle import dtype as dtypes
from sbpjax._core.tensor.handle.device import device as Device
from sbpjax._core.tensor.handle.size import Size
from sbpjax._core.tensor.handle.tensor import Tensor
from sbpjax.errors import CheckpointError, PlacementError, SbpjaxError
from sbpjax.sbp.placement import placement as Placement

from .safetensors import Names as Renaming
from .safetensors import place_arrays, rename_arrays
from .torch_allowed import UnrestrictedUnpickler, allowed_objects
from .torch_pickle import PLAIN, Machine, Names
from .tree import select_names

STORAGES = {
    "DoubleStorage": np.float64, "FloatStorage": np.float32, "HalfStorage": np.float16,
    "BFloat16Storage": ml_dtypes.bfloat16, "LongStorage": np.int64, "IntStorage": np.int32, "ShortStorage": np.int16,
    "CharStorage": np.int8, "ByteStorage": np.uint8, "BoolStorage": np.bool_,
    "ComplexFloatStorage": np.complex64, "ComplexDoubleStorage": np.complex128, "UntypedStorage": np.uint8,
}  # fmt: skip
_MOST_INFLATED = 100  # how much larger than its bytes a compressed member may be
_MOST_SHARED = 8  # how much larger than the archive all tensors together may be: tied weights, expanded tensors
_SPARE = 256 * 2**20  # and this much besides, in bytes
_MOST_DIM = 2**40
Make = Callable[[np.ndarray], Any]


@dataclass(frozen=True)
class _Kind:
    """The element type of a storage, as a file names it."""

    dtype: np.dtype


@dataclass(frozen=True, eq=False)
class _Storage:
    """The memory that tensors are views of: a member of the archive, 1-D and contiguous."""

    array: np.ndarray


VALUES: dict[str, Any] = {
    **{f"torch.{d.name}": d for d in dtypes.ALL},
    **{f"{m}.{n}": _Kind(np.dtype(d)) for m in ("torch", "torch.storage") for n, d in STORAGES.items()},
}


class TorchArchive:
    """A zip archive as ``torch.save`` writes it, its sizes checked before anything is read.

    Args:
        file: a path or a file object.
    """

    def __init__(self, file: str | os.PathLike | IO[bytes]) -> None:
        self._zip = zipfile.ZipFile(file)
        self._storages: dict[str, _Storage] = {}
        try:
            self._size = _size_of(self._zip)
            self._left = _MOST_SHARED * self._size + _SPARE
            self._check()
            names = self._zip.namelist()
            self._root = next((n for n in names if n.endswith("/data.pkl")), "").removesuffix("/data.pkl")
            if not self._root:
                raise ValueError("an archive without data.pkl")
            if f"{self._root}/byteorder" in names and self.member("byteorder") != b"little":
                raise ValueError("its numbers are big-endian")
        except BaseException:
            self._zip.close()
            raise

    def __enter__(self) -> TorchArchive:
        return self

    def __exit__(self, *exc: object) -> None:
        self._zip.close()

    def _check(self) -> None:
        entries = self._zip.infolist()
        if sum(e.compress_size for e in entries) > self._size:
            raise ValueError(f"members of more bytes than the archive's {self._size}")
        for e in entries:
            stored = e.compress_type == zipfile.ZIP_STORED
            if e.file_size > (e.compress_size if stored else _MOST_INFLATED * e.compress_size):
                raise ValueError(f"{e.filename!r} of {e.file_size} bytes, from {e.compress_size} in the archive")

    def member(self, name: str) -> bytes:
        """Return the bytes of a member; their checksum was compared."""
        return self._zip.read(f"{self._root}/{name}")

    def storage(self, pid: Any) -> _Storage:
        """Return the storage of a persistent id, ``("storage", kind, key, location, count)``."""
        if type(pid) is not tuple or len(pid) != 5 or pid[0] != "storage" or type(pid[1]) is not _Kind:
            raise ValueError("a persistent id that is no storage")
        dtype, key, count = pid[1].dtype, pid[2], _whole(pid[4])
        if type(key) is not str:
            raise ValueError(f"a storage whose key is a {type(key).__name__}")
        if key not in self._storages:
            entry = self._zip.getinfo(f"{self._root}/data/{key}")
            if count * dtype.itemsize > entry.file_size:
                raise ValueError(f"storage {key!r}: {count} elements of {dtype} in {entry.file_size} bytes")
            self._storages[key] = _Storage(np.frombuffer(self.member(f"data/{key}"), dtype, count))
        found = self._storages[key]
        if found.array.dtype != dtype or found.array.size != count:
            raise ValueError(f"storage {key!r} as {count} of {dtype} and as {found.array.size} of {found.array.dtype}")
        return found

    def view(self, storage: Any, offset: Any, shape: Any, stride: Any, dtype: Any = None) -> np.ndarray:
        """Return a read-only view of a storage.

        Raises:
            ValueError: the view exceeds its storage, or all tensors together are absurdly larger than the archive.
        """
        if type(storage) is not _Storage:
            raise ValueError(f"a tensor in a {type(storage).__name__} instead of a storage")
        array = storage.array if dtype is None else storage.array.view(dtypes.as_dtype(dtype).np)
        offset, shape, stride = _whole(offset), _wholes(shape), _wholes(stride)
        if len(shape) != len(stride):
            raise ValueError(f"{len(shape)} sizes and {len(stride)} strides")
        if 0 in shape:
            return np.zeros(shape, array.dtype)
        last = offset + sum((n - 1) * s for n, s in zip(shape, stride, strict=True))
        if last >= array.size:
            raise ValueError(f"a tensor of shape {shape} reaches element {last} of a storage of {array.size}")
        self._left -= prod(shape) * array.itemsize
        if self._left < 0:
            raise ValueError(f"tensors of more than {_MOST_SHARED} times the archive's {self._size} bytes")
        steps = [s * array.itemsize for s in stride]
        return np.lib.stride_tricks.as_strided(array[offset:], shape, steps, writeable=False)


def _size_of(archive: zipfile.ZipFile) -> int:
    file: Any = archive.fp
    return file.seek(0, os.SEEK_END)


def _whole(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= _MOST_DIM:
        raise ValueError(f"{str(value)[:40]!r} in place of an integer from 0 to 2**40")
    return value


def _wholes(values: Any) -> tuple[int, ...]:
    if not isinstance(values, (tuple, list)):
        raise ValueError(f"a {type(values).__name__} where sizes stand")
    return tuple(map(_whole, values))


def names_of(archive: TorchArchive, make: Make, parameter: Callable[[Any, bool], Any], classes: Mapping) -> Names:
    """Return the names that a file may use.

    Args:
        archive: the file.
        make: builds a tensor from an array.
        parameter: builds a parameter from a tensor and its ``requires_grad``.
        classes: further classes that the user allowed, by full name.
    """

    def v2(storage, offset, shape, stride, requires_grad=False, hooks=None, metadata=None) -> Any:
        return mark_grad(make(archive.view(storage, offset, shape, stride)), requires_grad)

    def v3(storage, offset, shape, stride, requires_grad, hooks, dtype, metadata=None) -> Any:
        if not isinstance(dtype, dtypes.dtype):
            raise ValueError(f"a tensor of dtype {type(dtype).__name__}")
        return mark_grad(make(archive.view(storage, offset, shape, stride, dtype)), requires_grad)

    def of_data(data, requires_grad=True, hooks=None) -> Any:
        if not isinstance(data, (Tensor, np.ndarray)):
            raise ValueError(f"a parameter of a {type(data).__name__}")
        return parameter(data, requires_grad is True)

    functions = {
        **PLAIN, "torch._utils._rebuild_tensor": v2, "torch._utils._rebuild_tensor_v2": v2,
        "torch._utils._rebuild_tensor_v3": v3, "torch._utils._rebuild_parameter": of_data,
        "torch.Size": _shape, "torch.device": _device,
    }  # fmt: skip
    return Names(functions, VALUES, classes)


def mark_grad(tensor: Any, requires_grad: Any) -> Any:
    """Return a tensor with ``requires_grad`` as in the file; arrays have no such flag."""
    return tensor.requires_grad_() if requires_grad is True and isinstance(tensor, Tensor) else tensor


def _shape(sizes: Any = ()) -> Size:
    return Size(_wholes(sizes))


def _device(kind: Any, index: Any = None) -> Device:
    if type(kind) is not str or not (index is None or type(index) is int):
        raise ValueError("a device of something else than a type and a number")
    try:
        return Device(kind, index)
    except PlacementError as error:
        raise ValueError(f"the device {kind[:40]!r}, {index}") from error


def rejection_error(name: str) -> CheckpointError:
    """Return the error for a name that is in no table."""
    return CheckpointError(
        "reading a PyTorch file",
        f"its pickle names {name[:200]}",
        "a plain state holds dicts, lists, numbers, strings and tensors; nothing else is imported or run",
        "in PyTorch: torch.save(model.state_dict(), path); for a file that you made: "
        "load(path, weights_only=False), or add_safe_globals([...]) of the names in it",
    )


def read_torch(
    path: str | os.PathLike | IO[bytes],
    make: Make = lambda array: array,
    parameter: Callable[[Any, bool], Any] = lambda data, requires_grad: data,
    weights_only: bool = True,
) -> Any:
    """Return the object that ``torch.save`` wrote.

    Args:
        path: the file, or a file object.
        make: builds a tensor from its read-only array; by default the array itself.
        parameter: builds a parameter from the result of `make` and its ``requires_grad``; by default that result.
        weights_only: reject a file that names anything but tensors, containers, plain values and the names of
            `add_safe_globals`. False runs any code that its author put there: only for files that you made.

    Raises:
        CheckpointError: the file is none of these, is damaged, or holds more than a plain state.
        FileNotFoundError: there is no such file.
    """
    try:
        with TorchArchive(path) as archive:
            names, text = names_of(archive, make, parameter, allowed_objects()), archive.member("data.pkl")
            if weights_only:
                return Machine(text, names, rejection_error, archive.storage).load()
            return UnrestrictedUnpickler(text, names, archive.storage).load()
    except (SbpjaxError, FileNotFoundError):  # also those of `make`
        raise
    except Exception as error:  # a damaged archive or pickle raises nearly anything
        raise damaged_error(f"reading the PyTorch file {str(path)!r}", error) from (None if weights_only else error)


def damaged_error(operation: str, error: Exception) -> CheckpointError:
    """Return the error for a file that cannot be read."""
    zipped = not isinstance(error, zipfile.BadZipFile)
    return CheckpointError(
        operation,
        f"{type(error).__name__}: {str(error)[:500]}" if zipped else "no zip archive, or a part of one",
        "zip files only: torch.save writes them since 1.6; of plain values, and of tensors within their storages",
        "check the path; an older file: torch.save(torch.load(path), path) in PyTorch",
    )


def load_torch(
    path: str | os.PathLike,
    *,
    into: Mapping[str, Tensor] | None = None,
    placement: Placement | None = None,
    sbp: Any = None,
    pattern: str | list[str] | None = None,
    names: Renaming = None,
    key: str | None = None,
    cast: bool = False,
) -> dict[str, Tensor]:
    """Return the tensors of a flat state that ``torch.save`` wrote, or write them into tensors.

    Args:
        path: the file.
        into: see `load_safetensors`, as ``placement``, ``sbp``, ``pattern`` and ``names``.
        placement: likewise.
        sbp: likewise.
        pattern: likewise.
        names: likewise.
        key: the key of the state in the file, e.g. ``"model"`` of ``{"model": state, "epoch": 3}``.
        cast: see `load_safetensors`.

    Raises:
        CheckpointError: the file is damaged, holds more than a plain state, or does not fit ``into``.
    """
    state = read_torch(path)
    if key is not None and isinstance(state, dict) and key in state:
        state = state[key]
    if not isinstance(state, dict) or not all(isinstance(v, np.ndarray) for v in state.values()):
        keys = list(state)[:6] if isinstance(state, dict) else type(state).__name__
        rule = "a flat state is a dict of tensors"
        raise CheckpointError(f"loading {str(path)!r}", f"{keys}", rule, "key= names its place in the file")
    arrays = rename_arrays(state, names)
    wanted = select_names(arrays, pattern)
    if into is not None and pattern is not None:
        into = {name: x for name, x in into.items() if name in wanted}
    return place_arrays({name: arrays[name] for name in wanted}, into, placement, sbp, cast)
