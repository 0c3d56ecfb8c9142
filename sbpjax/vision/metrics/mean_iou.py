"""`MeanIoU`: mean intersection over union of segmentation, accumulated over batches.

Worked case: two classes, truth ``[0, 0, 1, 1]``, predictions ``[0, 1, 1, 1]``. Class 0 has one pixel in common of two
in all, class 1 two of three: the mean is (1/2 + 2/3) / 2.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sbpjax.errors import DataError


def _host(values: Any) -> np.ndarray:
    return np.asarray(values.numpy() if hasattr(values, "numpy") else values)


class MeanIoU:
    """Counts of pixels by truth and prediction.

    Args:
        num_classes: how many classes there are.
        ignore: a class of the truth that does not count, such as borders.

    Example:
        >>> score = MeanIoU(2)
        >>> score.update([0, 1, 1, 1], [0, 0, 1, 1])
        >>> round(score.compute()["miou"], 4)
        0.5833
    """

    def __init__(self, num_classes: int, ignore: int | None = 255) -> None:
        self.num_classes, self.ignore = num_classes, ignore
        self.counts = np.zeros((num_classes, num_classes), np.int64)

    def update(self, predictions: Any, truth: Any) -> None:
        """Count a batch.

        Args:
            predictions: classes, of any shape, a tensor or an array.
            truth: classes, of that shape.

        Raises:
            DataError: shapes differ, or a class is out of range.
        """
        predicted, true = _host(predictions).reshape(-1), _host(truth).reshape(-1)
        if predicted.shape != true.shape:
            seen = f"{predicted.shape[0]} predictions, {true.shape[0]} of the truth"
            raise DataError("MeanIoU.update", seen, "each pixel has both", "logits.argmax(1) of (B, C, H, W)")
        if self.ignore is not None:
            predicted, true = predicted[true != self.ignore], true[true != self.ignore]
        for name, values in (("predictions", predicted), ("truth", true)):
            if values.size and not 0 <= values.min() <= values.max() < self.num_classes:
                seen, rule = f"{name} from {values.min()} to {values.max()}", f"classes are 0 to {self.num_classes - 1}"
                raise DataError(
                    "MeanIoU.update", seen, rule, "num_classes=, or ignore= for a class that does not count"
                )
        places = true.astype(np.int64) * self.num_classes + predicted
        self.counts += np.bincount(places, minlength=self.num_classes**2).reshape(self.counts.shape)

    def compute(self) -> dict[str, Any]:
        """Return ``miou``, ``accuracy``, and ``iou``, an array by class, NaN of classes that occur nowhere."""
        right = np.diag(self.counts)
        covered = self.counts.sum(0) + self.counts.sum(1) - right
        with np.errstate(invalid="ignore"):
            iou = np.where(covered > 0, right / np.maximum(covered, 1), np.nan)
        whole = self.counts.sum()
        mean = float(np.nanmean(iou)) if (covered > 0).any() else float("nan")
        return {"miou": mean, "accuracy": float(right.sum() / whole) if whole else float("nan"), "iou": iou}
