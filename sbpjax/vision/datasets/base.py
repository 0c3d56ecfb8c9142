"""`VisionDataset`: base class of image datasets: transforms, seeds per sample, unreadable files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sbpjax.errors import OpTypeError
from sbpjax.utils.data import Dataset
from sbpjax.vision.transforms import Transform

from .reading import checked_on_error, first_readable


class VisionDataset(Dataset):
    """Base of datasets of images: a subclass defines `read` and `__len__`.

    Args:
        transform: takes a sample, or its image alone where samples are pairs. A `Transform` is also given the sample's
            number, ``epoch * len(dataset) + index``, from which all that is random in it follows.
        on_error: ``"raise"`` an error that names the file, or ``"skip"`` it: the next sample that can be read stands in
            its place, and a warning names the file.

    Attributes:
        epoch: see `set_epoch`.

    Raises:
        DataError: `on_error` is neither.
        OpTypeError: `transform` cannot be called.
    """

    def __init__(self, transform: Callable[[Any], Any] | None = None, on_error: str = "raise") -> None:
        if transform is not None and not callable(transform):
            seen = f"transform is a {type(transform).__name__}"
            rule = "a transform is called with each image"
            raise OpTypeError(f"{type(self).__name__}(...)", seen, rule, "transform=Compose([...])")
        self.transform, self.on_error, self.epoch = transform, checked_on_error(on_error, type(self).__name__), 0

    def set_epoch(self, epoch: int) -> None:
        """Draw other random numbers: call it before each pass, as of samplers."""
        self.epoch = epoch

    def read(self, index: int) -> Any:
        """Return a sample as it is in the files: a dict, or a pair of an image and its label."""
        raise NotImplementedError(f"{type(self).__name__} has no read()")

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__} has no __len__()")

    def __getitem__(self, index: int) -> Any:
        size = len(self)
        if not -size <= index < size:
            raise IndexError(f"index {index} is outside a dataset of {size} samples")
        index = int(index) % size
        return self._transform_sample(self._read_or_next(index), self.epoch * size + index)

    def _read_or_next(self, index: int) -> Any:
        """Return the sample of an index, or of the next one whose files can be read."""
        return first_readable(self.read, index, len(self), self.on_error)

    def _transform_sample(self, sample: Any, number: int) -> Any:
        if self.transform is None:
            return sample
        options = {"number": number} if isinstance(self.transform, Transform) else {}
        if isinstance(sample, dict):
            return self.transform(sample, **options)
        image, label = sample
        return self.transform(image, **options), label
