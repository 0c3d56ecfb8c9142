"""`Size`: the shape of a tensor, a tuple that prints as ``sbpjax.Size([2, 3])``."""

from __future__ import annotations

import math
from typing import Any

from sbpjax._core import naming


class Size(tuple):
    """A tensor's shape: a tuple of ints with `numel`."""

    __slots__ = ()

    def numel(self) -> int:
        """Return the number of elements."""
        return math.prod(self)

    def __repr__(self) -> str:
        return f"{naming.package()}.Size([{', '.join(map(str, self))}])"

    __str__ = __repr__

    def __getitem__(self, index) -> Any:
        item = tuple.__getitem__(self, index)
        return Size(item) if isinstance(index, slice) else item

    def __add__(self, other):
        return Size(tuple.__add__(self, tuple(other)))

    def __mul__(self, count):
        return Size(tuple.__mul__(self, count))

    __rmul__ = __mul__

    def __radd__(self, other):
        return Size(tuple(other) + tuple(self))

    def __reduce__(self):
        return Size, (tuple(self),)
