"""`torch.utils.weak`: dicts that hold their keys weakly and tell them apart by identity."""

from __future__ import annotations

import weakref
from collections.abc import MutableMapping
from typing import Any


class WeakIdRef(weakref.ref):
    """A weak reference that is equal to another if both are to the same object."""

    __slots__ = ("_id",)

    def __init__(self, key: Any, callback: Any = None) -> None:
        super().__init__(key, callback)  # type: ignore[call-arg]
        self._id = id(key)

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: Any) -> bool:
        mine, theirs = self(), other()
        return mine is theirs if mine is not None and theirs is not None else self is other


class WeakIdKeyDictionary(MutableMapping):
    """A dict of objects by identity; an entry goes with its key.

    Args:
        dict: the first entries.
        ref_type: accepted.
    """

    def __init__(self, dict: Any = None, ref_type: type = WeakIdRef) -> None:
        self.data: Any = {}
        self.update(dict or {})

    def __setitem__(self, key: Any, value: Any) -> None:
        data = self.data
        self.data[WeakIdRef(key, lambda ref: data.pop(ref, None))] = value

    def __getitem__(self, key: Any) -> Any:
        try:
            return self.data[WeakIdRef(key)]
        except KeyError:
            raise KeyError(key) from None

    def __delitem__(self, key: Any) -> None:
        del self.data[WeakIdRef(key)]

    def __contains__(self, key: Any) -> bool:
        try:
            return WeakIdRef(key) in self.data
        except TypeError:
            return False

    def __iter__(self):
        for ref in list(self.data):
            key = ref()
            if key is not None:
                yield key

    def __len__(self) -> int:
        return len(list(iter(self)))


WeakTensorKeyDictionary = WeakIdKeyDictionary
WeakTensorRefKey = WeakIdRef


class TensorWeakRef:
    """A weak reference to a tensor.

    Args:
        tensor: the tensor.
    """

    def __init__(self, tensor: Any) -> None:
        self.ref = weakref.ref(tensor)

    def __call__(self) -> Any:
        return self.ref()
