"""`Cifar`: the binary files of CIFAR-10 and CIFAR-100, memory-mapped.

    cifar-10-batches-bin/      data_batch_1.bin … data_batch_5.bin, test_batch.bin: a class, then 3072 bytes, per image
    cifar-100-binary/          train.bin, test.bin: a coarse class, a fine class, then 3072 bytes

The bytes of an image are 32 × 32 of red, of green, of blue.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from sbpjax.errors import DataError

from .base import VisionDataset

_PIXELS = 3 * 32 * 32
_FILES = {
    ("cifar10", True): [f"data_batch_{i}.bin" for i in range(1, 6)],
    ("cifar10", False): ["test_batch.bin"],
    ("cifar100", True): ["train.bin"],
    ("cifar100", False): ["test.bin"],
}


class CifarFiles:
    """The images and classes in the files; what goes to a worker is the paths.

    Args:
        folder: where the files are.
        train: the images for training, or those for testing.
        coarse: the 20 coarse classes of CIFAR-100, not the 100 fine ones.

    Raises:
        DataError: a file is missing, or cut off.
    """

    def __init__(self, folder: str | os.PathLike, train: bool = True, coarse: bool = False) -> None:
        operation = f"Cifar({os.fspath(folder)!r})"
        kinds = [kind for (kind, part), names in _FILES.items() if part == train and self._all_exist(folder, names)]
        if not kinds:
            wanted = " or ".join(", ".join(names) for (_, part), names in _FILES.items() if part == train)
            rule = f"the folder has {wanted}"
            raise DataError(operation, "files are missing", rule, "the binary version, unpacked")
        ahead = 2 if kinds[0] == "cifar100" else 1
        self._row, self._class = ahead + _PIXELS, 1 if ahead == 2 and not coarse else 0
        self._parts = [os.path.join(folder, name) for name in _FILES[kinds[0], train]]
        for path in self._parts:
            size = os.path.getsize(path)
            if size == 0 or size % self._row:
                rule = f"an image has {self._row} bytes"
                raise DataError(operation, f"{path} has {size} bytes", rule, "fetch it again: it is cut off")
        self._map()

    @staticmethod
    def _all_exist(folder: str | os.PathLike, names: list[str]) -> bool:
        return all(os.path.isfile(os.path.join(folder, name)) for name in names)

    def _map(self) -> None:
        self._rows = [np.memmap(path, np.uint8, "r").view(np.ndarray).reshape(-1, self._row) for path in self._parts]
        self._ends = np.cumsum([len(rows) for rows in self._rows])

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_rows", "_ends")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._map()

    def __len__(self) -> int:
        return int(self._ends[-1])

    def __getitem__(self, index: int) -> tuple[np.ndarray, int]:
        """Return an image, `(32, 32, 3)`, and its class."""
        part = int(np.searchsorted(self._ends, index, side="right"))
        row = self._rows[part][index - int(self._ends[part])]  # of the part's end, so from behind
        return row[-_PIXELS:].reshape(3, 32, 32).transpose(1, 2, 0), int(row[self._class])


class Cifar(VisionDataset):
    """Pairs of an image, ``(32, 32, 3)`` uint8, and its class.

    Args:
        folder: where the files are. Those of CIFAR-100 are called ``train.bin`` and ``test.bin``.
        transform: of the image, see `VisionDataset`.
        train: the images for training, or those for testing.
        coarse: the 20 coarse classes of CIFAR-100, not the 100 fine ones.

    Raises:
        DataError: a file is missing, or cut off.

    Example:
        >>> np.arange(2 * 3074, dtype=np.uint8).tofile("train.bin")
        >>> image, label = Cifar(".")[1]
        >>> image.shape, label
        ((32, 32, 3), 3)
    """

    def __init__(
        self,
        folder: str | os.PathLike,
        transform: Callable[[Any], Any] | None = None,
        *,
        train: bool = True,
        coarse: bool = False,
    ) -> None:
        super().__init__(transform)
        self.files = CifarFiles(folder, train, coarse)

    def __len__(self) -> int:
        return len(self.files)

    def read(self, index: int) -> tuple[np.ndarray, int]:
        """Return an image and its class."""
        return self.files[index]
