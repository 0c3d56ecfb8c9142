"""Datasets: map-style (samples by index) and iterable ones, and their combinations.

This module runs in worker processes, which have no JAX: it imports no JAX, and datasets that hold tensors hold NumPy
arrays there (see `sbpjax.data.loading.host_tensors`).
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from sbpjax.errors import DataError

from .sampler import permutation

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")


class Dataset(Generic[T_co]):
    """Base of datasets with an index: a subclass defines ``__getitem__`` and, for most samplers, ``__len__``.

    A subclass may define ``__getitems__(indices)`` too, which gets all of a batch at once.

    Example:
        >>> class Squares(Dataset):
        ...     def __getitem__(self, index):
        ...         return index**2
        ...
        ...     def __len__(self):
        ...         return 10
    """

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError(f"{type(self).__name__} has no __getitem__")

    def __add__(self, other: Dataset) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co]):
    """Base of iterable datasets: a subclass defines ``__iter__``.

    Every worker iterates over its own copy; `get_worker_info` gives the number of the worker.
    """

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(f"{type(self).__name__} has no __iter__")

    def __add__(self, other: Dataset) -> Any:
        return ChainDataset([self, other])


class IterDataPipe(IterableDataset[T_co]):
    """An `IterableDataset` under the name that pipelines of OneFlow and PyTorch use."""


class MapDataPipe(Dataset[T_co]):
    """A `Dataset` under the name that pipelines of PyTorch use."""


class TensorDataset(Dataset):
    """The rows of some tensors of equal length, as tuples.

    Args:
        tensors: tensors or arrays with the same size of dim 0.

    Raises:
        ValueError: their sizes differ.
    """

    def __init__(self, *tensors: Any) -> None:
        sizes = [len(t) for t in tensors]
        if len(set(sizes)) > 1:
            rule = "Size mismatch between tensors: all need the same size of dim 0"
            raise DataError("TensorDataset(...)", f"sizes {sizes}", rule, "TensorDataset(x[:n], y[:n])")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return len(self.tensors[0])


class StackDataset(Dataset):
    """Samples of several datasets of equal length, side by side as a tuple, or as a dict for datasets given by name."""

    def __init__(self, *args: Dataset, **kwargs: Dataset) -> None:
        if bool(args) == bool(kwargs):
            rule = "Supported either tuple- (via args) or dict- (via kwargs) like input/output"
            seen = f"{len(args)} by place, {len(kwargs)} by name"
            raise DataError("StackDataset(...)", seen, rule, "StackDataset(image=images, label=labels)")
        self.datasets: Any = kwargs or args
        sizes = [len(d) for d in (kwargs.values() if kwargs else args)]  # type: ignore[arg-type]
        if len(set(sizes)) > 1:
            rule = "Size mismatch between datasets"
            raise DataError("StackDataset(...)", f"lengths {sizes}", rule, "datasets of equal length")
        self._length = sizes[0]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: dataset[index] for name, dataset in self.datasets.items()}
        return tuple(dataset[index] for dataset in self.datasets)

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[T_co]):
    """Concatenation of several datasets.

    Args:
        datasets: datasets with an index and a length.

    Raises:
        ValueError: there is none, or one is an `IterableDataset`.
    """

    def __init__(self, datasets: Iterable[Dataset]) -> None:
        self.datasets = list(datasets)
        ok = self.datasets and not any(isinstance(d, IterableDataset) for d in self.datasets)
        if not ok:
            rule = "datasets should not be an empty iterable, and ConcatDataset does not support IterableDataset"
            seen = str([type(d).__name__ for d in self.datasets])
            raise DataError("ConcatDataset(datasets)", seen, rule, "ChainDataset(datasets)")
        self.cumulative_sizes = list(itertools.accumulate(len(d) for d in self.datasets))  # type: ignore[arg-type]

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> T_co:
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} is outside a dataset of {len(self)} samples")
        index = index + len(self) if index < 0 else index
        which = bisect.bisect_right(self.cumulative_sizes, index)
        return self.datasets[which][index - (self.cumulative_sizes[which - 1] if which else 0)]


class ChainDataset(IterableDataset):
    """Concatenation of several iterable datasets."""

    def __init__(self, datasets: Iterable[Dataset]) -> None:
        self.datasets = datasets

    def __iter__(self) -> Iterator:
        for dataset in self.datasets:
            yield from dataset  # type: ignore[misc]

    def __len__(self) -> int:
        return sum(len(d) for d in self.datasets)  # type: ignore[arg-type]


class Subset(Dataset[T_co]):
    """Some samples of a dataset.

    Args:
        dataset: the dataset.
        indices: their indices, in the wanted order.
    """

    def __init__(self, dataset: Dataset[T_co], indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: list[int]) -> list:
        chosen = [self.indices[i] for i in indices]
        if callable(getattr(self.dataset, "__getitems__", None)):
            return self.dataset.__getitems__(chosen)  # type: ignore[attr-defined]
        return [self.dataset[i] for i in chosen]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(dataset: Dataset, lengths: Sequence[int | float], generator: Any = None) -> list[Subset]:
    """Return a dataset's samples, shuffled and cut into subsets.

    Args:
        dataset: the dataset.
        lengths: the sizes of the subsets, or fractions that sum to 1; the remainder of rounding goes to the first ones.
        generator: the `sbpjax.Generator` of the order; the default generator if not given.

    Raises:
        ValueError: the lengths do not sum to the dataset's length.
    """
    total = len(dataset)  # type: ignore[arg-type]
    sizes = list(lengths)
    if math.isclose(sum(sizes), 1) and sum(sizes) <= 1 + 1e-9 and not all(isinstance(n, int) for n in sizes):
        sizes = [math.floor(total * fraction) for fraction in lengths]
        for i in range(total - sum(sizes)):
            sizes[i % len(sizes)] += 1
    if sum(sizes) != total:
        rule = "Sum of input lengths does not equal the length of the input dataset!"
        seen = f"lengths {list(lengths)} for {total} samples"
        raise DataError("random_split(dataset, lengths)", seen, rule, "random_split(dataset, [0.9, 0.1])")
    order = permutation(total, generator)
    ends = list(itertools.accumulate(int(n) for n in sizes))
    return [Subset(dataset, order[end - int(n) : end]) for n, end in zip(sizes, ends)]
