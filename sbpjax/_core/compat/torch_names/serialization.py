"""`torch.save` and `torch.load` in PyTorch's own file format.

    torch.save(model.state_dict(), "model.pt")              # under the alias
    torch.load("model.pt", weights_only=True)               # in PyTorch, and the other way round

A file is a zip archive: a pickle in which tensors name their storages, and the raw bytes of each. Tensors that share
memory are written one by one. With ``weights_only``, as by default, reading runs nothing that the file names.
"""

from __future__ import annotations

import io
import os
import pickle
import pickletools
import zipfile
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from sbpjax._core.tensor.handle.device import device
from sbpjax._core.tensor.handle.dtype import dtype as Dtype
from sbpjax._core.tensor.handle.size import Size
from sbpjax._core.tensor.handle.tensor import Tensor
from sbpjax._core.tensor.storage.view_steps import contiguous_strides
from sbpjax.data.checkpoint.torch_allowed import add_safe_globals as add_safe_globals
from sbpjax.data.checkpoint.torch_allowed import allowed_objects
from sbpjax.data.checkpoint.torch_allowed import clear_safe_globals as clear_safe_globals
from sbpjax.data.checkpoint.torch_allowed import get_safe_globals as get_safe_globals
from sbpjax.data.checkpoint.torch_allowed import safe_globals as safe_globals
from sbpjax.data.checkpoint.torch_file import STORAGES, TorchArchive, names_of, read_torch
from sbpjax.data.save_load import _make_placer
from sbpjax.data.save_load import load as _load_directory
from sbpjax.errors import CheckpointError
from sbpjax.nn.parameter import Parameter

DEFAULT_PROTOCOL = 2
_KIND_OF = {np.dtype(v): k for k, v in STORAGES.items() if k != "UntypedStorage"}


class _Name:
    """A name in the pickle, which is not imported: PyTorch need not be there."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name

    def __call__(self, *args):
        raise TypeError(f"{self.module}.{self.name} is a name in a file")


class _Storage:
    """The memory of one tensor, a file of the archive."""

    def __init__(self, key: str, kind: str, count: int) -> None:
        self.key, self.kind, self.count = key, kind, count


class _Writer(pickle._Pickler):  # type: ignore[name-defined]  # the one in C cannot write names of other packages
    """Pickles as usual, tensors as PyTorch does."""

    dispatch = dict(pickle._Pickler.dispatch)  # type: ignore[attr-defined]

    def __init__(self, file) -> None:
        super().__init__(file, 2)
        self.arrays: list[np.ndarray] = []

    def persistent_id(self, obj: Any) -> Any:
        if isinstance(obj, _Storage):
            return "storage", _Name("torch", obj.kind), obj.key, "cpu", obj.count
        return None

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, Parameter):
            value = obj.detach(), obj.requires_grad, OrderedDict()
            return _Name("torch._utils", "_rebuild_parameter"), value
        if isinstance(obj, Tensor):
            return _Name("torch._utils", "_rebuild_tensor_v2"), self._tensor(obj)
        if isinstance(obj, Size):
            return _Name("torch", "Size"), (tuple(obj),)
        if isinstance(obj, device):
            return _Name("torch", "device"), (obj.type,)
        return NotImplemented

    def _tensor(self, x: Any) -> tuple:
        array = np.ascontiguousarray(x.detach().numpy())
        kind = _KIND_OF.get(array.dtype)
        if kind is None:
            rule = f"PyTorch's storages hold {', '.join(sorted(d.name for d in _KIND_OF))}"
            raise CheckpointError("torch.save", f"a tensor of {x.dtype.name}", rule, "x.float()")
        self.arrays.append(array)
        storage = _Storage(str(len(self.arrays) - 1), kind, array.size)
        shape = tuple(x.shape)
        return storage, 0, shape, contiguous_strides(shape), bool(x.requires_grad), OrderedDict()

    def _name(self, obj: _Name) -> None:
        self.write(pickle.GLOBAL + f"{obj.module}\n{obj.name}\n".encode())

    def _dtype(self, obj: Any) -> None:
        self._name(_Name("torch", obj.name))

    dispatch[_Name] = _name
    dispatch[Dtype] = _dtype


def save(obj: Any, f: Any, pickle_module=None, pickle_protocol: int = 2, **options: Any) -> None:
    """Write tensors, containers and plain values to a file that PyTorch reads.

    Args:
        obj: the object to write; global tensors are written whole.
        f: a path or a file object.
        pickle_module: accepted.
        pickle_protocol: accepted; it is 2.
        options: accepted.
    """
    text = io.BytesIO()
    writer = _Writer(text)
    writer.dump(obj)
    root = Path(f).stem if isinstance(f, (str, os.PathLike)) else "archive"
    with zipfile.ZipFile(f, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(f"{root}/data.pkl", text.getvalue())
        archive.writestr(f"{root}/byteorder", "little")
        for key, array in enumerate(writer.arrays):
            archive.writestr(f"{root}/data/{key}", array.tobytes())
        archive.writestr(f"{root}/version", "3\n")


def load(f: Any, map_location=None, pickle_module=None, *, weights_only: bool | None = None, **options: Any) -> Any:
    """Load a file written by `save`, PyTorch's or `sbpjax.save`.

    Args:
        f: a path or a file object; a directory is one of `sbpjax.save`.
        map_location: a device, or a placement, on which every tensor becomes global; functions and dicts are accepted.
        pickle_module: accepted.
        weights_only: refuse a file that names anything but tensors, containers and plain values; True by default. With
            False the file is unpickled, which runs any code that its author put there: only for files that you made.
        options: accepted.

    Raises:
        CheckpointError: the file is damaged, or names anything that `weights_only` refuses.
        FileNotFoundError: there is no such file.
    """
    if callable(map_location) or isinstance(map_location, dict):
        map_location = None
    if isinstance(f, (str, os.PathLike)) and Path(f).is_dir():
        return _load_directory(f, map_location)
    return read_torch(f, _make_placer(map_location, None), Parameter, weights_only is not False)


def get_unsafe_globals_in_checkpoint(f: Any) -> list[str]:
    """Return the names in a file that `weights_only` refuses."""
    with TorchArchive(f) as archive:
        named = _named_in(archive.member("data.pkl"))
        known = names_of(archive, lambda array: array, lambda data, requires_grad: data, allowed_objects())
    return list(dict.fromkeys(name for name in named if not known.has(name)))


def _named_in(text: bytes) -> Iterator[str]:
    """Return the names in a pickle, found in its opcodes without running any of them."""
    strings: list[str] = []
    for opcode, argument, _ in pickletools.genops(text):
        if opcode.name == "GLOBAL":
            yield argument.replace(" ", ".", 1)
        elif opcode.name == "STACK_GLOBAL":
            yield ".".join(strings[-2:])
        elif isinstance(argument, str):
            strings.append(argument)
