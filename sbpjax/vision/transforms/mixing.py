"""`MixUp` and `CutMix`: mix the images and labels of a batch.

Image i is mixed with image i - 1, the first with the last. A label is then a row of shares, one per class:

    images (B, C, H, W), labels (B,)    →    images (B, C, H, W), shares (B, num_classes)

The batch's number and the seed decide the share; so every rank draws the same, and a global batch stays split. Mix
before the step: in a traced program the number is a constant, and every batch would be mixed alike.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import sbpjax as flow
from sbpjax import Tensor
from sbpjax.errors import DataError, SbpError, message, warn
from sbpjax.nn import functional as F

from .random_numbers import generator

BEFORE = "mix a batch before its step; with a Trainer in a Hook's before_step, which may write trainer.batch"


class _Mixing:
    def __init__(self, num_classes: int, alpha: float, seed: int) -> None:
        if not isinstance(num_classes, int) or num_classes < 2 or not isinstance(alpha, (int, float)) or alpha <= 0:
            name = type(self).__name__
            seen, rule = f"num_classes={num_classes!r}, alpha={alpha!r}", "two classes or more, and alpha is above 0"
            raise DataError(f"{name}(num_classes, alpha)", seen, rule, f"{name}(num_classes=10)")
        self.num_classes, self.alpha, self.seed = num_classes, float(alpha), seed

    def __call__(self, images: Tensor, labels: Tensor, number: int | Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return a batch, mixed.

        Args:
            images: ``(B, C, H, W)``, floating, any sbp.
            labels: ``(B,)`` whole numbers, or ``(B, num_classes)`` shares.
            number: the batch's, from which all chance follows; needed. In a traced program (`nn.Graph`, the loss of a
                `Trainer`) it is a constant, with a warning.

        Returns:
            Images, and shares ``(B, num_classes)``.

        Raises:
            DataError: shapes or dtypes do not fit, or there is no number, or one that a program traces.
        """
        operation = f"{type(self).__name__}()(images, labels, number)"
        if number is None:
            rule = "the mixture follows from the batch's number, the same on all ranks and after a resume"
            raise DataError(operation, "no number", rule, "number=step")
        if images.ndim != 4 or not images.is_floating_point() or labels.shape[0] != images.shape[0]:
            seen = f"images {tuple(images.shape)} {images.dtype}, labels {tuple(labels.shape)}"
            rule = "images are (B, C, H, W), floating, and each has a label"
            raise DataError(operation, seen, rule, "mix after ToTensor and batching")
        if labels.ndim == 1 and (labels.is_floating_point() or labels.dtype == flow.bool):
            rule = "labels are whole numbers, one per image, or (B, num_classes) shares"
            raise DataError(operation, f"labels {tuple(labels.shape)} {labels.dtype}", rule, "labels.long()")
        if labels.ndim == 2 and labels.shape[1] != self.num_classes:
            seen, rule = f"labels {tuple(labels.shape)}", f"labels are (B,) or (B, {self.num_classes})"
            raise DataError(operation, seen, rule, f"num_classes={labels.shape[1]}")
        number = _host_number(number, operation)
        if _is_traced(images):
            seen = "a program is traced, in which the number is a constant"
            rule = "each number mixes otherwise; a traced program is kept, and would mix every batch alike"
            warn(message(operation, seen, rule, BEFORE))
        shares = labels if labels.ndim == 2 else F.one_hot(labels.long(), self.num_classes)
        random = generator(self.seed, number)
        images, share = self.mix_images(images, random.beta(self.alpha, self.alpha), random)
        shares = shares.to(images.dtype)
        return images, shares * share + shares.roll(1, 0) * (1 - share)

    def mix_images(self, images: Tensor, share: float, random: np.random.Generator) -> tuple[Tensor, float]:
        """Return the images, and what share of each is its own."""
        raise NotImplementedError


def _host_number(number: int | Tensor, operation: str) -> int:
    if isinstance(number, Tensor) and _is_traced(number):
        rule = "chance follows from the number on the host, before a program runs"
        raise DataError(operation, "a number that a program traces", rule, BEFORE)
    return int(number)


def _is_traced(x: Tensor) -> bool:
    from jax.core import Tracer  # here: workers of a loader import this file, and have no JAX

    try:
        return not x.is_meta and isinstance(x.jax(), Tracer)
    except SbpError:  # parts of unequal sizes, or partial sums: an eager tensor that is no ordinary array
        return False


class MixUp(_Mixing):
    """Weighted sums of images.

    Args:
        num_classes: how many classes there are.
        alpha: of the Beta distribution of weights; small for weights near 0 or 1.
        seed: with the batch's number decides the weight.

    Raises:
        DataError: there are no two classes, or `alpha` is not above 0.

    Source: Zhang et al., "mixup", 2017.

    Example:
        >>> images, shares = MixUp(3)(flow.ones(2, 3, 4, 4), flow.tensor([0, 2]), number=0)
        >>> shares.sum(1)
        tensor([1., 1.])
    """

    def __init__(self, num_classes: int, alpha: float = 1.0, seed: int = 0) -> None:
        super().__init__(num_classes, alpha, seed)

    def mix_images(self, images: Tensor, share: float, random: np.random.Generator) -> tuple[Tensor, float]:
        """Return the sums."""
        return images * share + images.roll(1, 0) * (1 - share), share


class CutMix(_Mixing):
    """Images with a rectangle from another image.

    Args:
        num_classes: how many classes there are.
        alpha: of the Beta distribution of the area that stays.
        seed: with the batch's number decides the rectangle.

    Raises:
        DataError: there are no two classes, or `alpha` is not above 0.

    Source: Yun et al., "CutMix", 2019.
    """

    def __init__(self, num_classes: int, alpha: float = 1.0, seed: int = 0) -> None:
        super().__init__(num_classes, alpha, seed)

    def mix_images(self, images: Tensor, share: float, random: np.random.Generator) -> tuple[Tensor, float]:
        """Return the images, and the share of the area that stays, exactly."""
        height, width = images.shape[-2:]
        x, y = int(random.integers(width)), int(random.integers(height))
        half = 0.5 * math.sqrt(1 - share)
        left, right = max(0, int(x - half * width)), min(width, int(x + half * width))
        top, bottom = max(0, int(y - half * height)), min(height, int(y + half * height))
        inside = np.zeros((height, width), bool)
        inside[top:bottom, left:right] = True
        if images.is_local:
            mask = flow.tensor(inside, device=images.device)
        else:
            mask = flow.tensor(inside, placement=images.placement, sbp=[flow.sbp.broadcast] * len(images.sbp))
        return flow.where(mask, images.roll(1, 0), images), 1 - (bottom - top) * (right - left) / (height * width)


def mix(first: Any, second: Any, p: float = 0.5, seed: int = 0) -> Any:
    """Return a function that mixes each batch by one of two ways, the first with a probability.

    Example:
        >>> either = mix(MixUp(3), CutMix(3))
        >>> either(flow.ones(2, 3, 4, 4), flow.tensor([0, 2]), 7)[1].shape
        sbpjax.Size([2, 3])
    """
    if (classes := getattr(first, "num_classes", None)) != (others := getattr(second, "num_classes", classes)):
        seen, rule = f"num_classes={classes} and {others}", "shares of both are of the same classes"
        raise DataError("mix(first, second)", seen, rule, f"num_classes={classes} of both")

    def mix_batch(images: Tensor, labels: Tensor, number: int | Tensor | None = None) -> tuple[Tensor, Tensor]:
        known = None if number is None else _host_number(number, "mix(first, second)(images, labels, number)")
        chosen = first if known is None or generator(seed + 1, known).random() < p else second
        return chosen(images, labels, known)

    return mix_batch
