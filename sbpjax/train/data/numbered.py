"""Datasets with random access by sample number, over any number of epochs: `Numbered` and `Shuffled`.

An epoch is part of the number: sample 2,500 of a dataset of 1,000 per epoch is in the third. So a position in a run is
one number, a run may be made longer, and `Blend` may take as many samples of a dataset as it needs.

`Numbered` is the base of all of them, `Shuffled` of those whose epochs have the same samples in another order.

`Permutation`: random permutation computed item by item (a Feistel network), without a list of n numbers.

A number below n is written as a pair ``(left, right)`` on a grid of about √n × √n. Each round adds to one of the two a
hash of the other, which can be undone: so the map is one-to-one, whatever the hash. The grid may be a little larger
than n; a number that lands outside is mapped again, until it lands inside. Source: Feistel networks, cycle walking
(Black and Rogaway, "Ciphers with arbitrary finite domains", 2002).

    order = Permutation(1_000_000_000_000, seed=(0, 3))
    order[5]                                   # the index of the sixth item of epoch 3, in microseconds
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from sbpjax.errors import DataError
from sbpjax.utils.data import Dataset
from sbpjax.vision.transforms.random_numbers import generator

_ROUNDS = 4  # of both halves; four halves already look random without the keys (Luby and Rackoff, 1988)
_MASK = (1 << 64) - 1


def _mix_bits(value: int) -> int:
    """Return a hash of 64 bits. Source: the finaliser of SplitMix64 (Steele, Lea and Flood, 2014)."""
    value &= _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


class Permutation:
    """The numbers below n in a random order.

    Args:
        n: the number of items.
        seed: a number, or several, none below zero.

    Example:
        >>> order = Permutation(5, seed=0)
        >>> sorted(order[i] for i in range(5))
        [0, 1, 2, 3, 4]
    """

    def __init__(self, n: int, seed: int | Sequence[int]) -> None:
        self.n = n
        self._rows = math.isqrt(max(n - 1, 0)) + 1
        self._columns = -(-n // self._rows)
        self._keys: list[int] = np.random.SeedSequence(seed).generate_state(2 * _ROUNDS, np.uint64).tolist()

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, index: int) -> int:
        if not 0 <= index < self.n:
            raise IndexError(f"index {index} is outside an order of {self.n}")
        rows, columns, keys = self._rows, self._columns, self._keys
        while True:
            left, right = divmod(int(index), columns)
            for i in range(0, 2 * _ROUNDS, 2):
                left = (left + _mix_bits(right + keys[i])) % rows
                right = (right + _mix_bits(left + keys[i + 1])) % columns
            index = left * columns + right
            if index < self.n:
                return index


_order = functools.lru_cache(maxsize=64)(Permutation)  # the keys of an epoch cost more than one look-up


class Numbered(Dataset):
    """Base of datasets with numbered samples: a subclass defines `sample`.

    Args:
        samples: the number of samples of a run: the length of the dataset.

    Raises:
        DataError: there are none.
    """

    def __init__(self, samples: int) -> None:
        if samples < 1:
            rule = "a run takes one sample at least"
            raise DataError(f"{type(self).__name__}(...)", f"samples={samples}", rule, "samples=steps * batch_size")
        self.samples = samples

    def sample(self, number: int) -> Any:
        """Return the sample of a number, which may be beyond the length."""
        raise NotImplementedError(f"{type(self).__name__} has no sample()")

    def __getitem__(self, index: int) -> Any:
        if not -self.samples <= index < self.samples:
            raise IndexError(f"index {index} is outside a dataset of {self.samples} samples")
        return self.sample(int(index) % self.samples)

    def __len__(self) -> int:
        return self.samples


class Shuffled(Numbered):
    """Base class of datasets with a fixed number of samples per epoch, in a new order for each epoch.

    The order is a function of `seed` and the epoch, and the randomness of a sample one of `seed` and its number:
    neither depends on the process, the time or the other samples.

    Args:
        per_epoch: the number of samples of an epoch.
        samples: the number of samples of a run; None for one epoch.
        seed: of all chance, 0 or more.
        shuffle: False for the order of the files.

    Attributes:
        per_epoch: the number of samples of an epoch.
        seed: of all chance.
        shuffle: whether the order is random.
    """

    def __init__(self, per_epoch: int, samples: int | None, seed: int, shuffle: bool) -> None:
        super().__init__(per_epoch if samples is None else samples)
        self.per_epoch, self.seed, self.shuffle = per_epoch, seed, shuffle

    def index(self, number: int) -> int:
        """Return the index within the epoch, in the order of the files, of the sample of a number."""
        epoch, index = divmod(number, self.per_epoch)
        return _order(self.per_epoch, (self.seed, epoch))[index] if self.shuffle else index

    def chance(self, number: int) -> np.random.Generator:
        """Return the randomness of the sample of a number."""
        return generator(self.seed, number)
