"""Datasets whose sample number i is defined for every i: a run takes the first so many of them.

An epoch is part of the number: sample 2,500 of a dataset of 1,000 per epoch is in the third. So a position in a run is
one number, a run may be made longer, and `Blend` may take as many samples of a dataset as it needs.
"""

from __future__ import annotations

from typing import Any

from sbpjax.errors import DataError
from sbpjax.utils.data import Dataset


class Numbered(Dataset):
    """Base of datasets with numbered samples: a subclass defines `sample`.

    Args:
        samples: how many samples a run takes: the length of the dataset.

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
