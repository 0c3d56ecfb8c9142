"""`torch.utils.data.dataloader`: the classes of a loader's iterators, which libraries make for loaders of their own.

_SingleProcessDataLoaderIter(loader)      # iter(loader), or over the fields of another class of loader

fastai's loaders are such: they have a loader's fields, and no base of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sbpjax.data.loading.dataloader import DataLoader, _Iterator


class _IsIterator(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, _Iterator) and cls.__name__ != "_MultiProcessingDataLoaderIter"


class _BaseDataLoaderIter(metaclass=_IsIterator):
    """The class of all iterators of loaders."""

    def __new__(cls, loader: Any) -> Any:
        return iter(loader) if isinstance(loader, DataLoader) else _iterate(loader)


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """An iterator without workers."""


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Nothing is of this class: a loader's workers are its own, and one of another class works in this process."""


def _iterate(loader: Any) -> Iterator:
    """Yield the batches of an object with a loader's fields: dataset, `_index_sampler` and `collate_fn`."""
    if hasattr(loader.dataset, "__getitem__"):
        for index in loader._index_sampler:
            rows = [loader.dataset[i] for i in index] if loader._auto_collation else loader.dataset[index]
            yield loader.collate_fn(rows)
    else:
        for row in loader.dataset:
            yield loader.collate_fn(row)
