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
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np

import sbpjax
from sbpjax.checkpoint.torch_file import _STORAGES, _Reader, _rebuild_tensor
from sbpjax.errors import CheckpointError, message
from sbpjax.tensor.dtype import dtype as Dtype
from sbpjax.tensor.steps import contiguous_strides
from sbpjax.utils.checkpoint import _placing
from sbpjax.utils.checkpoint import load as _load_directory

DEFAULT_PROTOCOL = 2
LoadEndianness = Any
MAP_LOCATION = FILE_LIKE = Any
_safe: list[Any] = []  # what files may name besides tensors, containers and plain values
_KIND_OF = {np.dtype(v): k for k, v in _STORAGES.items()}


class _Name:
    """A name that the pickle says without importing it: PyTorch need not be there."""

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
        if isinstance(obj, sbpjax.nn.Parameter):
            value = obj.detach(), obj.requires_grad, OrderedDict()
            return _Name("torch._utils", "_rebuild_parameter"), value
        if isinstance(obj, sbpjax.Tensor):
            return _Name("torch._utils", "_rebuild_tensor_v2"), self._tensor(obj)
        if isinstance(obj, sbpjax.Size):
            return _Name("torch", "Size"), (tuple(obj),)
        if isinstance(obj, sbpjax.device):
            return _Name("torch", "device"), (obj.type,)
        return NotImplemented

    def _tensor(self, x: Any) -> tuple:
        array = np.ascontiguousarray(x.detach().numpy())
        kind = _KIND_OF.get(array.dtype)
        if kind is None:
            rule = f"PyTorch's storages hold {', '.join(sorted(d.name for d in _KIND_OF))}"
            raise CheckpointError(message("torch.save", f"a tensor of {x.dtype.name}", rule, "x.float()"))
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


class _Loader(_Reader):
    """Reads tensors as tensors."""

    def __init__(self, archive: zipfile.ZipFile, root: str, place, weights_only: bool) -> None:
        pickle.Unpickler.__init__(self, io.BytesIO(archive.read(f"{root}/data.pkl")))  # an open member keeps the file
        self._archive, self._root, self._storages = archive, root, {}
        self._place, self._weights_only = place, weights_only

    def find_class(self, module: str, name: str) -> Any:
        if module == "torch._utils" and name in ("_rebuild_tensor", "_rebuild_tensor_v2"):
            return self._tensor
        if (module, name) == ("torch._utils", "_rebuild_parameter"):
            return lambda data, requires_grad=True, *rest: sbpjax.nn.Parameter(data, requires_grad)
        if module == "torch" and name in ("Size", "device"):
            return getattr(sbpjax, name)
        if module == "torch" and isinstance(getattr(sbpjax, name, None), Dtype):
            return getattr(sbpjax, name)
        for value, full in map(_named, _safe):
            if full == f"{module}.{name}":
                return value
        try:
            return super().find_class(module, name)
        except CheckpointError:
            if self._weights_only:
                raise
        return pickle.Unpickler.find_class(self, module, name)

    def _tensor(self, storage, offset: int, shape, stride, requires_grad: bool = False, *rest):
        array = np.array(_rebuild_tensor(storage, offset, shape, stride), order="C")
        found = self._place(array)
        return found.requires_grad_() if requires_grad else found


def save(obj: Any, f: Any, pickle_module=None, pickle_protocol: int = 2, **options: Any) -> None:
    """Write tensors, containers and plain values to a file that PyTorch reads.

    Args:
        obj: what to write; global tensors are written whole.
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
    """Return what `save`, PyTorch's or `sbpjax.save` wrote.

    Args:
        f: a path or a file object; a directory is one of `sbpjax.save`.
        map_location: a device, or a placement, on which every tensor becomes global; functions and dicts are accepted.
        pickle_module: accepted.
        weights_only: refuse a file that names anything but tensors, containers and plain values; True by default.
        options: accepted.

    Raises:
        CheckpointError: the file is damaged, or names what `weights_only` refuses.
        FileNotFoundError: there is no such file.
    """
    if callable(map_location) or isinstance(map_location, dict):
        map_location = None
    if isinstance(f, (str, os.PathLike)) and Path(f).is_dir():
        return _load_directory(f, map_location)
    place = _placing(map_location, None)
    try:
        with zipfile.ZipFile(f) as archive:
            root = next(n for n in archive.namelist() if n.endswith("/data.pkl")).removesuffix("/data.pkl")
            return _Loader(archive, root, place, weights_only is not False).load()
    except (CheckpointError, FileNotFoundError):
        raise
    except (zipfile.BadZipFile, StopIteration, pickle.UnpicklingError, ValueError, KeyError, EOFError) as error:
        rule = "the file is a zip archive as torch.save writes it (PyTorch 1.6 or later)"
        seen = f"{type(error).__name__}: {error}"
        raise CheckpointError(message(f"torch.load({f!r})", seen, rule, "check the path; save it again")) from None


def _named(entry: Any) -> tuple[Any, str]:
    """Return an entry of the safe names and its full name: it may be a pair of both."""
    if isinstance(entry, tuple):
        return entry
    return entry, f"{entry.__module__}.{entry.__qualname__}"


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Allow functions and classes that files may name although `weights_only` is asked for.

    Args:
        safe_globals: the functions and classes, or pairs of one and the full name under which files know it.
    """
    _safe.extend(entry for entry in safe_globals if entry not in _safe)


def get_safe_globals() -> list[Any]:
    """Return what `add_safe_globals` allowed."""
    return list(_safe)


def clear_safe_globals() -> None:
    """Allow nothing of it any more."""
    _safe.clear()


class safe_globals:
    """Within the block, allow functions and classes; see `add_safe_globals`.

    Args:
        safe_globals: the functions and classes.
    """

    def __init__(self, safe_globals: list[Any]) -> None:
        self._entries = list(safe_globals)

    def __enter__(self) -> None:
        self._before = list(_safe)
        add_safe_globals(self._entries)

    def __exit__(self, *exc: Any) -> None:
        _safe[:] = self._before


def get_unsafe_globals_in_checkpoint(f: Any) -> list[str]:
    """Return the names in a file that `weights_only` refuses."""
    found: list[str] = []

    class _Names(_Loader):
        def find_class(self, module: str, name: str) -> Any:
            try:
                return super().find_class(module, name)
            except CheckpointError:
                found.append(f"{module}.{name}")
                return _Anything

    with zipfile.ZipFile(f) as archive:
        root = next(n for n in archive.namelist() if n.endswith("/data.pkl")).removesuffix("/data.pkl")
        _Names(archive, root, _placing(None, None), True).load()
    return list(dict.fromkeys(found))


class _Anything:
    """What stands for an object whose class is not loaded."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __setstate__(self, state: Any) -> None:
        pass


def default_restore_location(storage: Any, location: str) -> Any:
    """Return what was read as it is: `map_location` says where it goes."""
    return storage


def set_default_mmap_options(flags: int) -> None:
    """Accept flags of memory maps: files are read whole."""
