"""Samplers: the order of a loader's samples, and their grouping into batches.

A random sampler draws one seed from its generator whenever it is started, and its whole order from that seed by NumPy.
So the order is a function of `sbpjax.manual_seed`, and a loader that resumes gives the seed back.

    sampler = RandomSampler(range(4))
    list(sampler), sampler.last_seed           # an order, and its seed
    sampler.resume(seed); list(sampler)        # the order of that seed, once

A sampler with random access has `starting_at(place)`, besides ``__iter__``: then a loader that resumes at step
1,000,000 does so at once.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar

import numpy as np

from sbpjax.errors import DataError

T_co = TypeVar("T_co", covariant=True)


def draw_seed(generator: Any = None) -> int:
    """Return the next number of a generator's stream, 64 bits, drawn on the host."""
    from sbpjax._core.tensor.creation.generator import generator_or_default  # workers load it without JAX

    return generator_or_default(generator).draw()


def permutation(n: int, generator: Any = None) -> list[int]:
    """Return 0 to n - 1 in a random order."""
    return np.random.default_rng(draw_seed(generator)).permutation(n).tolist()


class Sampler(Generic[T_co]):
    """Base of samplers: a subclass defines ``__iter__``, which gives indices (or lists of them), and ``__len__``.

    Args:
        data_source: not used; for PyTorch's spelling.
    """

    def __init__(self, data_source: Sized | None = None) -> None:
        pass

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(f"{type(self).__name__} has no __iter__")


def start_order(sampler: Iterable, place: int) -> Iterator:
    """Return a sampler's order after its first `place` items.

    They are skipped one by one, unless the class that defines ``__iter__`` also defines `starting_at`.
    """
    home = next((each for each in type(sampler).__mro__ if "__iter__" in vars(each)), None)
    if place and home is not None and "starting_at" in vars(home):
        return sampler.starting_at(place)  # type: ignore[attr-defined]
    order = iter(sampler)
    next(itertools.islice(order, place, place), None)
    return order


class SequentialSampler(Sampler[int]):
    """All samples in the order of the dataset."""

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return self.starting_at(0)

    def starting_at(self, place: int) -> Iterator[int]:
        """Return the order from a place on."""
        return iter(range(place, len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class Seeded(Sampler[int]):
    """Base of random samplers.

    Attributes:
        generator: the generator of seeds; None for the default one.
        last_seed: the seed of the order that was started last.
    """

    def __init__(self, generator: Any = None) -> None:
        self.generator = generator
        self.last_seed: int | None = None
        self._next_seed: int | None = None

    def resume(self, seed: int) -> None:
        """Set the seed of the next order instead of drawing one."""
        self._next_seed = seed

    def random(self) -> np.random.Generator:
        """Return the randomness of a new order."""
        self.last_seed = draw_seed(self.generator) if self._next_seed is None else self._next_seed
        self._next_seed = None
        return np.random.default_rng(self.last_seed)


class RandomSampler(Seeded):
    """All samples in a random order, or draws with replacement.

    Args:
        data_source: a sized dataset.
        replacement: whether a sample may come twice.
        num_samples: how many to draw; as many as there are if not given.
        generator: a `sbpjax.Generator`.
    """

    def __init__(
        self, data_source: Sized, replacement: bool = False, num_samples: int | None = None, generator: Any = None
    ) -> None:
        super().__init__(generator)
        self.data_source, self.replacement, self._num_samples = data_source, replacement, num_samples
        _positive("RandomSampler", "num_samples", self.num_samples)

    @property
    def num_samples(self) -> int:
        """How many samples are drawn."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        return self.starting_at(0)

    def starting_at(self, place: int) -> Iterator[int]:
        """Return the order from a place on."""
        random, n = self.random(), len(self.data_source)
        if self.replacement:
            return iter(random.integers(n, size=self.num_samples)[place:].tolist())
        whole, rest = divmod(self.num_samples, n)
        orders = [random.permutation(n) for _ in range(whole + bool(rest))]
        return iter(np.concatenate(orders)[place : self.num_samples].tolist())

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Seeded):
    """Some samples in a random order.

    Args:
        indices: the indices to draw.
        generator: a `sbpjax.Generator`.
    """

    def __init__(self, indices: Sequence[int], generator: Any = None) -> None:
        super().__init__(generator)
        self.indices = indices

    def __iter__(self) -> Iterator[int]:
        return iter([self.indices[i] for i in self.random().permutation(len(self.indices)).tolist()])

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Seeded):
    """Draws with given weights.

    Args:
        weights: one per sample, not necessarily of sum 1.
        num_samples: how many to draw.
        replacement: whether a sample may come twice.
        generator: a `sbpjax.Generator`.
    """

    def __init__(
        self, weights: Sequence[float], num_samples: int, replacement: bool = True, generator: Any = None
    ) -> None:
        super().__init__(generator)
        _positive("WeightedRandomSampler", "num_samples", num_samples)
        self.weights = np.asarray(weights, np.float64)
        if self.weights.ndim != 1:
            rule = f"weights should be a 1d sequence but given weights have shape {self.weights.shape}"
            raise DataError("WeightedRandomSampler(...)", f"{self.weights.shape}", rule, "weights of one dim")
        if not (np.isfinite(self.weights).all() and (self.weights >= 0).all() and self.weights.any()):
            rule = "weights are finite and not negative, and one at least is greater than 0"
            raise DataError("WeightedRandomSampler(...)", f"weights {self.weights[:8].tolist()}", rule, "[1.0, 2.0]")
        if not replacement and num_samples > np.count_nonzero(self.weights):
            seen = f"num_samples={num_samples}, {np.count_nonzero(self.weights)} weights greater than 0"
            rule = "without replacement a sample comes once"
            raise DataError("WeightedRandomSampler(...)", seen, rule, "replacement=True")
        self.num_samples, self.replacement = num_samples, replacement

    def __iter__(self) -> Iterator[int]:
        random = self.random()
        if self.replacement:
            ends = np.cumsum(self.weights)
            drawn = np.searchsorted(ends, random.random(self.num_samples) * ends[-1], side="right")
            return iter(np.minimum(drawn, len(ends) - 1).tolist())
        share = self.weights / self.weights.sum()
        return iter(random.choice(len(share), self.num_samples, replace=False, p=share).tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Batches of a sampler's indices, as lists.

    Args:
        sampler: yields indices.
        batch_size: the number of indices per list.
        drop_last: leave out a last list that is shorter.
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        _positive("BatchSampler", "batch_size", batch_size)
        if not isinstance(drop_last, bool):
            rule = f"drop_last should be a boolean value, but got drop_last={drop_last}"
            raise DataError("BatchSampler(...)", f"{drop_last!r}", rule, "drop_last=True")
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[list[int]]:
        yield from self.starting_at(0)

    def starting_at(self, place: int) -> Iterator[list[int]]:
        """Return the lists from a place on."""
        return self._lists(start_order(self.sampler, place * self.batch_size))

    def _lists(self, indices: Iterator[int]) -> Iterator[list[int]]:
        while batch := list(itertools.islice(indices, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        whole, rest = divmod(len(self.sampler), self.batch_size)  # type: ignore[arg-type]
        return whole + (rest > 0 and not self.drop_last)


def _positive(label: str, name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value <= 0:
        rule = f"{name} should be a positive integer value, but got {name}={value}"
        raise DataError(f"{label}(...)", f"{value!r}", rule, f"{name}=8")
