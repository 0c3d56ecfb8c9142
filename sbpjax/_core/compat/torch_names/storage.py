"""`torch.UntypedStorage`: the memory of a tensor or a file as bytes.

The package safetensors opens a file for PyTorch as ``UntypedStorage.from_file(path, shared=False, nbytes=n)``. It takes
``storage[start:stop]`` for each tensor, ``torch.asarray`` of that, and ``view(dtype=…)`` of the bytes.
"""

from __future__ import annotations

import os
from typing import Any, NoReturn

import numpy as np

from sbpjax._core.functions.strides import Storage
from sbpjax.errors import NotInJaxError

_INSTEAD = "x.numpy(), torch.frombuffer(buffer, dtype=...)"


class _Untyped(type):
    """The type of `UntypedStorage`: the storages that tensors give are its instances."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, FileStorage) or (isinstance(instance, Storage) and not instance.typed)


class UntypedStorage(metaclass=_Untyped):
    """Memory counted in bytes, of a tensor (``x.untyped_storage()``) or of a file; none is made empty."""

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        rule = "memory belongs to JAX"
        raise NotInJaxError("torch.UntypedStorage(...)", "a storage without a tensor", rule, _INSTEAD)

    @staticmethod
    def from_file(filename: str | os.PathLike, shared: bool = False, nbytes: int = 0) -> FileStorage:
        """Return a file's first bytes, which are read where they are used.

        Args:
            filename: the file.
            shared: write through to the file; refused.
            nbytes: how many bytes.

        Raises:
            NotInJaxError: `shared` is True.
            FileNotFoundError: there is no such file.
        """
        if shared:
            operation, rule = (
                f"torch.UntypedStorage.from_file({filename!r}, shared=True)",
                "a file's bytes are read only",
            )
            raise NotInJaxError(operation, "writes that should reach the file", rule, "shared=False")
        return FileStorage(filename, nbytes)


class FileStorage:
    """Bytes of a file; a slice is an array over them.

    Args:
        filename: the file.
        nbytes: how many.
    """

    def __init__(self, filename: str | os.PathLike, nbytes: int) -> None:
        self._bytes: np.ndarray = np.memmap(filename, np.uint8, "r", shape=(nbytes,)) if nbytes else np.empty(0, "u1")
        self.filename = os.fspath(filename)

    def __len__(self) -> int:
        return len(self._bytes)

    def __getitem__(self, index: int | slice) -> Any:
        found = self._bytes[index]
        return found if isinstance(index, slice) else int(found)

    def nbytes(self) -> int:
        """Return the number of bytes."""
        return len(self)

    size = nbytes

    def untyped(self) -> FileStorage:
        """Return the storage itself."""
        return self
