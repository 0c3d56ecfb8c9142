"""Datasets with random access by sample number, over any number of epochs: `Numbered` and `Shuffled`.

An epoch is part of the number: sample 2,500 of a dataset of 1,000 per epoch is in the third. So a position in a run is
one number, a run may be made longer, and `Blend` may take as many samples of a dataset as it needs.

`Numbered` is the base of all of them, `Shuffled` of those whose epochs have the same samples in another order.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from sbpjax.errors import DataError
from sbpjax.utils.data import Dataset
from sbpjax.vision.transforms.chance import generator

from .permutation import Permutation

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
    """Base of datasets that have so many samples per epoch, in an order of its own for each.

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
