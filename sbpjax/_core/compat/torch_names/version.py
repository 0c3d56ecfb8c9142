"""`torch.version`: the PyTorch version of the alias; no CUDA or HIP build."""

from __future__ import annotations

import re

PEER = "2.13.0"  # the release that the tests compare with


class TorchVersion(str):
    """A version that compares with strings and tuples by its numbers."""

    @staticmethod
    def _key(value) -> tuple:
        if isinstance(value, str):
            value = re.split(r"[.+]", value)
        return tuple(int(part) for part in map(str, value) if part.isdigit())

    def __lt__(self, other) -> bool:
        return self._key(self) < self._key(other)

    def __le__(self, other) -> bool:
        return self._key(self) <= self._key(other)

    def __gt__(self, other) -> bool:
        return self._key(self) > self._key(other)

    def __ge__(self, other) -> bool:
        return self._key(self) >= self._key(other)

    def __eq__(self, other) -> bool:
        return self._key(self) == self._key(other) if isinstance(other, (str, tuple)) else False

    def __hash__(self) -> int:
        return str.__hash__(self)


__version__ = TorchVersion(f"{PEER}+sbpjax")
debug = False
git_version = "Unknown"
cuda = hip = rocm = xpu = None
