"""`torch.utils.data.dataloader` and `._utils`: classes that libraries ask an iterator or a loader about."""

from __future__ import annotations

from typing import Any

from sbpjax.data.loading.dataloader import _Endless as _InfiniteConstantSampler
from sbpjax.data.loading.dataloader import _Iterator as _BaseDataLoaderIter
from sbpjax.data.loading.fetch import IterFetcher as _IterableDatasetFetcher
from sbpjax.data.loading.fetch import MapFetcher as _MapDatasetFetcher
from sbpjax.utils.data import DataLoader as DataLoader
from sbpjax.utils.data import default_collate as default_collate
from sbpjax.utils.data import default_convert as default_convert
from sbpjax.utils.data import get_worker_info as get_worker_info

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]
_InfiniteConstantSampler, _BaseDataLoaderIter = _InfiniteConstantSampler, _BaseDataLoaderIter
_IterableDatasetFetcher, _MapDatasetFetcher = _IterableDatasetFetcher, _MapDatasetFetcher


class _DatasetKind:
    """How a dataset is read."""

    Map = 0
    Iterable = 1


class _WithPool(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, _BaseDataLoaderIter) and (instance._pool is not None) is cls._pooled  # type: ignore[attr-defined]


class _SingleProcessDataLoaderIter(metaclass=_WithPool):
    """Iterators of loaders without workers are instances."""

    _pooled = False


class _MultiProcessingDataLoaderIter(metaclass=_WithPool):
    """Iterators of loaders with workers are instances."""

    _pooled = True


def __getattr__(name: str) -> Any:
    if name == "_worker_info":
        return get_worker_info()
    raise AttributeError(name)
