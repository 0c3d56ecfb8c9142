"""`LazyPayload`: stands in `Tensor._array` for an array that is computed at its first read.

Shape, dtype and device are known before. A tensor with a lazy payload has `_seen = UNREAD`, which no storage has as
stamp: so the check for views that were written (`x._cell.stamp != x._seen`) finds it too, and
`storage.regenerate` calls `materialize`. There are four:

    LazyView      `storage.lazy_views`   an output of view ops that have not run
    LazyRandom    `storage.lazy_random`  random numbers that are not drawn
    LazyConstant  `storage.lazy_constant`  one value that is not filled
    StackSlice    `storage.offloaded`    a parameter that is kept divided, or in a stack of all layers
"""

from __future__ import annotations

import threading
from typing import Any

UNREAD = -1


class LazyPayload:
    """The payload of a tensor that has not been read.

    Attributes:
        aval: shape and dtype.
        sharding: the sharding that the array will have.
        stamp: that of the storage for which it is right; a write increments the storage's.
    """

    __slots__ = ("aval", "stamp")

    aval: Any
    sharding: Any
    stamp: int

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape; of a global tensor the physical one."""
        return self.aval.shape

    @property
    def dtype(self) -> Any:
        """NumPy's dtype."""
        return self.aval.dtype

    def materialize(self) -> Any:
        """Return the array."""
        raise NotImplementedError


class LazyRoot(LazyPayload):
    """The payload of a whole storage that has not been read: `Cell.array` and `_array` of the tensors that show it.

    Attributes:
        lock: held while the array is made: two threads that read a tensor get one array.
    """

    __slots__ = ("committed", "lock", "sharding")

    def __init__(self, like: Any) -> None:
        self.aval, self.stamp = like.aval, 0
        self.sharding, self.committed = like.sharding, like.committed
        self.lock = threading.RLock()

    @property
    def device(self) -> Any:
        """JAX's device of a local tensor."""
        return next(iter(self.sharding.device_set))
