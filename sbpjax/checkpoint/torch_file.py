"""PyTorch's ``.pt`` and ``.pth`` files of plain states, read without running anything that is in them.

Such a file is a zip archive of a pickle and the raw bytes of each storage. A pickle is a program that calls what it
names; here it can name only the handful of things that a state of tensors needs, and each of them is a function of
this file.
"""

from __future__ import annotations

import collections
import os
import pickle
import zipfile
from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np

from sbpjax.errors import CheckpointError, message
from sbpjax.sbp.placement import placement as Placement
from sbpjax.tensor.tensor import Tensor

from .document import chosen
from .safetensors import Names, placed, renamed

_STORAGES = {
    "DoubleStorage": np.float64, "FloatStorage": np.float32, "HalfStorage": np.float16,
    "BFloat16Storage": ml_dtypes.bfloat16, "LongStorage": np.int64, "IntStorage": np.int32, "ShortStorage": np.int16,
    "CharStorage": np.int8, "ByteStorage": np.uint8, "BoolStorage": np.bool_,
    "ComplexFloatStorage": np.complex64, "ComplexDoubleStorage": np.complex128,
}  # fmt: skip


def _rebuild_tensor(storage: np.ndarray, offset: int, shape, stride, *rest) -> np.ndarray:
    shape, stride = tuple(shape), tuple(stride)
    last = offset + sum((n - 1) * s for n, s in zip(shape, stride, strict=True))
    if 0 in shape:
        return np.zeros(shape, storage.dtype)
    if offset < 0 or min(stride, default=0) < 0 or last >= storage.size:
        raise ValueError(f"a tensor of shape {shape} reaches element {last} of a storage of {storage.size}")
    steps = [s * storage.itemsize for s in stride]
    return np.lib.stride_tricks.as_strided(storage[offset:], shape, steps, writeable=False)


def _rebuild_parameter(data: np.ndarray, *rest) -> np.ndarray:
    return data


class _Reader(pickle.Unpickler):
    """Unpickles containers, plain values and tensors, and nothing else."""

    def __init__(self, archive: zipfile.ZipFile, root: str) -> None:
        super().__init__(archive.open(f"{root}/data.pkl"))
        self._archive, self._root = archive, root
        self._storages: dict[str, np.ndarray] = {}

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("collections", "OrderedDict"):
            return collections.OrderedDict
        if module == "torch._utils" and name in ("_rebuild_tensor_v2", "_rebuild_tensor"):
            return _rebuild_tensor
        if module == "torch._utils" and name == "_rebuild_parameter":
            return _rebuild_parameter
        if module in ("torch", "torch.storage") and name in _STORAGES:
            return _STORAGES[name]
        if (module, name) == ("torch", "Size"):
            return tuple
        raise CheckpointError(
            message(
                "reading a PyTorch file",
                f"its pickle names {module}.{name}",
                "a plain state holds dicts, lists, numbers, strings and tensors; nothing else is run",
                "in PyTorch: torch.save(model.state_dict(), path)",
            )
        )

    def persistent_load(self, pid: Any) -> np.ndarray:
        kind, dtype, key, _, count = pid
        if kind != "storage":
            raise ValueError(f"a persistent {kind!r}")
        if key not in self._storages:
            data = self._archive.read(f"{self._root}/data/{key}")
            self._storages[key] = np.frombuffer(data, dtype, count)
        return self._storages[key]


def read_torch(path: str | os.PathLike) -> Any:
    """Return what ``torch.save`` wrote, with NumPy arrays for tensors.

    Raises:
        CheckpointError: the file is none of these, is damaged, or holds more than a plain state.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            root = next(n for n in archive.namelist() if n.endswith("/data.pkl")).removesuffix("/data.pkl")
            if f"{root}/byteorder" in archive.namelist() and archive.read(f"{root}/byteorder") != b"little":
                raise ValueError("its numbers are big-endian")
            return _Reader(archive, root).load()
    except CheckpointError:
        raise
    except Exception as error:  # a damaged pickle raises nearly anything
        raise CheckpointError(
            message(
                f"reading the PyTorch file {str(path)!r}",
                f"{type(error).__name__}: {error}",
                "the file is a zip archive as torch.save writes it (PyTorch 1.6 or later)",
                "check the path; save older files again with a newer PyTorch",
            )
        ) from None


def load_torch(
    path: str | os.PathLike,
    *,
    into: Mapping[str, Tensor] | None = None,
    placement: Placement | None = None,
    sbp: Any = None,
    pattern: str | list[str] | None = None,
    names: Names = None,
    key: str | None = None,
) -> dict[str, Tensor]:
    """Return the tensors of a flat state that ``torch.save`` wrote, or write them into tensors.

    Args:
        path: the file.
        into: see `load_safetensors`, as ``placement``, ``sbp``, ``pattern`` and ``names``.
        placement: likewise.
        sbp: likewise.
        pattern: likewise.
        names: likewise.
        key: where in the file the state is, e.g. ``"model"`` of ``{"model": state, "epoch": 3}``.

    Raises:
        CheckpointError: the file is damaged, holds more than a plain state, or does not fit ``into``.
    """
    state = read_torch(path)
    if key is not None and isinstance(state, dict) and key in state:
        state = state[key]
    if not isinstance(state, dict) or not all(isinstance(v, np.ndarray) for v in state.values()):
        keys = list(state)[:6] if isinstance(state, dict) else type(state).__name__
        rule = "a flat state is a dict of tensors"
        raise CheckpointError(message(f"loading {str(path)!r}", f"{keys}", rule, "key= says where in the file it is"))
    arrays = renamed(state, names)
    wanted = chosen(arrays, pattern)
    if into is not None and pattern is not None:
        into = {name: x for name, x in into.items() if name in wanted}
    return placed({name: arrays[name] for name in wanted}, into, placement, sbp)
