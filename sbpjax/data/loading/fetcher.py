"""Fetchers: make one batch, in a worker or in the training process, with the same randomness.

Random numbers of `random` and `numpy.random` inside a dataset are seeded by (the epoch's seed, the batch's number), so
a batch does not depend on the number of workers, nor on the worker that fetches it.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from sbpjax.errors import DataError


class WorkerInfo(NamedTuple):
    """Number and seed of a worker.

    Attributes:
        id: its number.
        num_workers: the number of workers.
        seed: the seed of its random numbers in this epoch.
        dataset: its copy of the dataset.
    """

    id: int
    num_workers: int
    seed: int
    dataset: Any


_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """Return the `WorkerInfo` of this process, None in the training process."""
    return _info


def set_worker_info(info: WorkerInfo) -> None:
    """Set the `WorkerInfo` of this process."""
    global _info
    _info = info


def seed_all(seed: int, number: int) -> None:
    """Seed `random` and `numpy.random` for a batch."""
    random.seed(seed << 32 ^ number)
    np.random.seed([seed & 0xFFFF_FFFF, seed >> 32 & 0xFFFF_FFFF, number & 0xFFFF_FFFF])


@contextlib.contextmanager
def seed_both(seed: int, number: int) -> Iterator[None]:
    """Seed both for the block, and put them back as they were."""
    before = random.getstate(), np.random.get_state()
    seed_all(seed, number)
    try:
        yield
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])


class MapFetcher:
    """Fetches batches of a dataset with an index.

    Args:
        dataset: the dataset.
        batched: whether an index is a list of indices.
        collate: makes a batch of samples.
    """

    def __init__(self, dataset: Any, batched: bool, collate: Callable[[Any], Any]) -> None:
        self.dataset, self.batched, self.collate = dataset, batched, collate

    def fetch(self, index: Any) -> Any:
        """Return the batch of an index.

        Raises:
            DataError: the dataset raised StopIteration, which would end the epoch unnoticed.
        """
        if not self.batched:
            return self.collate(_get_item(self.dataset.__getitem__, index))
        if callable(getattr(self.dataset, "__getitems__", None)):
            return self.collate(_get_item(self.dataset.__getitems__, index))
        return self.collate([_get_item(self.dataset.__getitem__, i) for i in index])


def _get_item(get: Callable[[Any], Any], index: Any) -> Any:
    try:
        return get(index)
    except StopIteration as error:
        rule = "StopIteration ends a loop: only an IterableDataset ends by it"
        fix = "raise IndexError for an index that does not exist, or look for a next() on an empty iterator"
        raise DataError(f"dataset[{index}]", f"StopIteration at index {index}", rule, fix) from error


class IterFetcher:
    """Fetches batches of an iterable dataset.

    Args:
        dataset: the dataset.
        batched: whether an index is a list, whose length is the size of the batch.
        collate: makes a batch of samples.
        drop_last: leave out a last batch that is shorter.
    """

    def __init__(self, dataset: Any, batched: bool, collate: Callable[[Any], Any], drop_last: bool) -> None:
        self.samples, self.batched, self.collate, self.drop_last = iter(dataset), batched, collate, drop_last

    def fetch(self, index: Any) -> Any:
        """Return the next batch; StopIteration if there is none."""
        if not self.batched:
            return self.collate(next(self.samples))
        batch = []
        for _ in index:
            try:
                batch.append(next(self.samples))
            except StopIteration:
                break
        if not batch or (self.drop_last and len(batch) < len(index)):
            raise StopIteration
        return self.collate(batch)
