"""Metrics of detection and segmentation; those of classification are in `sbpjax.train.evaluation`.

`AveragePrecision`: of each class, detections of all images are put in the order of their scores. Each in turn is right
if it overlaps a box of the truth that none before it had, by a threshold at least. So far down the list, the precision
is the share of right ones, the recall the share of boxes that were found; the score is the mean precision at 101
recalls, of the largest that is reached at that recall or a higher one, over ten thresholds from 0.5 to 0.95, and over
classes. Crowds, and boxes outside of a range of areas, count neither as found nor as missed, nor does a detection that
overlaps them best.

`MeanIoU`, with two classes, truth ``[0, 0, 1, 1]`` and predictions ``[0, 1, 1, 1]``: class 0 has one pixel in common of
two in all, class 1 two of three, so the mean is (1/2 + 2/3) / 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sbpjax.errors import DataError

THRESHOLDS = np.linspace(0.5, 0.95, 10)
RECALLS = np.linspace(0, 1, 101)
AREAS = {"all": (0, 1e10), "small": (0, 32**2), "medium": (32**2, 96**2), "large": (96**2, 1e10)}
MOST = (1, 10, 100)  # detections of an image and a class that count


@dataclass
class _Pairs:
    """What is known of the detections of one image and class.

    Attributes:
        scores: `(D,)`, best first.
        right: `(thresholds, D)`: whether each has a box of the truth.
        left_out: `(thresholds, D)`: whether it does not count.
        count: how many boxes of the truth count.
    """

    scores: np.ndarray
    right: np.ndarray
    left_out: np.ndarray
    count: int


def _host(values: Any, *shape: int) -> np.ndarray:
    array = np.asarray(values.numpy() if hasattr(values, "numpy") else values)
    return array.reshape(shape) if shape else array


class AveragePrecision:
    """COCO's average precision of detections, collected image by image.

    Example:
        >>> score = AveragePrecision()
        >>> boxes = [[0, 0, 10, 10], [20, 20, 50, 50]]
        >>> score.update({"boxes": boxes, "scores": [0.9, 0.8], "labels": [1, 1]}, {"boxes": boxes, "labels": [1, 1]})
        >>> round(score.compute()["map"], 4)
        1.0
    """

    def __init__(self) -> None:
        self._images: list[tuple[dict[str, np.ndarray], dict[str, np.ndarray]]] = []

    def update(self, detections: dict[str, Any], truth: dict[str, Any]) -> None:
        """Take an image.

        Args:
            detections: ``boxes`` ``(D, 4)``, left, top, right, bottom; ``scores`` and ``labels`` ``(D,)``.
            truth: ``boxes`` ``(G, 4)``, ``labels`` ``(G,)``; maybe ``iscrowd`` and ``area`` ``(G,)``.

        Raises:
            DataError: a key is missing, or lengths differ.
        """
        found = {name: _host(detections.get(name, ()), *shape) for name, shape in _KEYS.items()}
        true = {name: _host(truth.get(name, ()), *shape) for name, shape in _KEYS.items() if name != "scores"}
        for requested, one in (("detections", found), ("truth", true)):
            lengths = {name: len(values) for name, values in one.items()}
            if len(set(lengths.values())) > 1:
                rule = "each box has a label, and each detection a score"
                raise DataError(f"AveragePrecision.update, {requested}", f"{lengths}", rule, "rows of one length")
        sides = true["boxes"][:, 2:] - true["boxes"][:, :2]
        true["area"] = _host(truth.get("area", sides.prod(1)), -1)
        true["iscrowd"] = _host(truth.get("iscrowd", np.zeros(len(sides))), -1).astype(bool)
        self._images.append((found, true))

    def compute(self) -> dict[str, float]:
        """Return ``map``, ``map50``, ``map75``, ``map_small``, ``map_medium``, ``map_large``, and mean recalls.

        ``ar1``, ``ar10`` and ``ar100`` are recalls with so many detections an image. -1 where no box counts, as in
        COCO's own scores.
        """
        classes = sorted({int(c) for found, true in self._images for c in true["labels"]})
        tables = {area: [self._table(c, AREAS[area], MOST[-1]) for c in classes] for area in AREAS}
        recalls = {most: [self._table(c, AREAS["all"], most)[1] for c in classes] for most in MOST}
        precision = {area: [table[0] for table in some] for area, some in tables.items()}
        scores = {"map": _mean(precision["all"])}
        scores |= {f"map{int(THRESHOLDS[i] * 100 + 0.5)}": _mean([one[i] for one in precision["all"]]) for i in (0, 5)}
        scores |= {f"map_{area}": _mean(precision[area]) for area in AREAS if area != "all"}
        return scores | {f"ar{most}": _mean(some) for most, some in recalls.items()}

    def _table(self, label: int, area: tuple[float, float], most: int) -> tuple[np.ndarray, np.ndarray]:
        """Return precisions ``(thresholds, recalls)`` and recalls ``(thresholds,)`` of a class, -1 if it has none."""
        pairs = [self._pairs(found, true, label, area, most) for found, true in self._images]
        pairs = [one for one in pairs if one is not None]
        count = sum(one.count for one in pairs)
        nothing = np.full((len(THRESHOLDS), len(RECALLS)), -1.0), np.full(len(THRESHOLDS), -1.0)
        if not count:
            return nothing
        order = np.argsort(-np.concatenate([one.scores for one in pairs]), kind="stable")
        right = np.concatenate([one.right for one in pairs], 1)[:, order]
        left_out = np.concatenate([one.left_out for one in pairs], 1)[:, order]
        hits, misses = (right & ~left_out).cumsum(1), (~right & ~left_out).cumsum(1)
        precisions, recalls = np.zeros((len(THRESHOLDS), len(RECALLS))), np.zeros(len(THRESHOLDS))
        for i, (hit, miss) in enumerate(zip(hits, misses, strict=True)):
            if not hit.size:
                continue
            recall = hit / count
            precision = hit / (hit + miss + np.spacing(1))
            best = np.maximum.accumulate(precision[::-1])[::-1]
            places = np.searchsorted(recall, RECALLS)
            reached = places < len(best)
            precisions[i, reached] = best[places[reached]]
            recalls[i] = recall[-1]
        return precisions, recalls

    @staticmethod
    def _pairs(found: dict, true: dict, label: int, area: tuple[float, float], most: int) -> _Pairs | None:
        mine, theirs = found["labels"] == label, true["labels"] == label
        if not mine.any() and not theirs.any():
            return None
        order = np.argsort(-found["scores"][mine], kind="stable")[:most]
        boxes, scores = found["boxes"][mine][order], found["scores"][mine][order]
        crowd, sizes = true["iscrowd"][theirs], true["area"][theirs]
        outside = crowd | (sizes < area[0]) | (sizes > area[1])
        last = np.argsort(outside, kind="stable")  # boxes that count come first
        outside, crowd = outside[last], crowd[last]
        overlap = _overlap(boxes, true["boxes"][theirs][last], crowd)
        right = np.zeros((len(THRESHOLDS), len(boxes)), bool)
        left_out = np.zeros_like(right)
        for i, threshold in enumerate(THRESHOLDS):
            taken = np.zeros(len(outside), bool)
            for d, row in enumerate(overlap):
                best, at = min(threshold, 1 - 1e-10), -1
                for g, value in enumerate(row):
                    if taken[g] and not crowd[g]:
                        continue
                    if at > -1 and not outside[at] and outside[g]:
                        break
                    if value >= best:
                        best, at = value, g
                if at > -1:
                    right[i, d], left_out[i, d], taken[at] = True, outside[at], True
        own = (boxes[:, 2:] - boxes[:, :2]).prod(1)
        left_out |= ~right & ((own < area[0]) | (own > area[1]))
        return _Pairs(scores, right, left_out, int((~outside).sum()))


_KEYS: dict[str, tuple[int, ...]] = {"boxes": (-1, 4), "labels": (-1,), "scores": (-1,)}


def _overlap(boxes: np.ndarray, true: np.ndarray, crowd: np.ndarray) -> np.ndarray:
    """Return ``(D, G)``: shared areas, of what both cover; of a crowd, of the detection alone."""
    low = np.maximum(boxes[:, None, :2], true[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], true[None, :, 2:])
    shared = np.maximum(high - low, 0).prod(-1)
    own, theirs = (boxes[:, 2:] - boxes[:, :2]).prod(1)[:, None], (true[:, 2:] - true[:, :2]).prod(1)[None]
    return shared / np.maximum(np.where(crowd[None], own, own + theirs - shared), 1e-12)


def _mean(values: list[np.ndarray]) -> float:
    """Return the mean of what is not -1, -1 if there is nothing."""
    flat = np.concatenate([np.asarray(one).reshape(-1) for one in values]) if values else np.zeros(0)
    return float(flat[flat > -1].mean()) if (flat > -1).any() else -1.0


class MeanIoU:
    """Mean intersection over union, from counts of pixels by truth and prediction.

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
