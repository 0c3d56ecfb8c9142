"""COCO's scores: pycocotools' numbers, recorded and computed, wrong rows; mean IoU by hand and by batches."""

from __future__ import annotations

import contextlib
import io

import numpy as np
import pytest

import sbpjax as flow
from sbpjax.errors import DataError
from sbpjax.vision.metrics import AveragePrecision, MeanIoU

# Of `case(0)`, by pycocotools 2.0.11.
RECORDED = [
    0.238820500457,
    0.532037938684,
    0.209172702985,
    0.123212321232,
    0.338350979472,
    0.329166666667,
    0.203063603064,
    0.505328005328,
    0.505328005328,
]
NAMES = "map map50 map75 map_small map_medium map_large ar1 ar10 ar100".split()


def case(seed, images=12):
    """Return detections and truth: boxes of all sizes, some found well, some badly, some twice, and crowds."""
    rng = np.random.default_rng(seed)
    found, true = [], []
    for _ in range(images):
        count = rng.integers(0, 7)
        low = rng.uniform(0, 200, (count, 2))
        boxes = np.concatenate([low, low + rng.uniform(4, 150, (count, 2))], 1)
        labels = rng.integers(1, 4, count)
        true.append({"boxes": boxes, "labels": labels, "iscrowd": rng.random(count) < 0.15})
        twice = np.concatenate([boxes, boxes]) + rng.normal(0, 6, (2 * count, 4))
        more = np.sort(rng.uniform(0, 300, (3, 2, 2)), 1).reshape(3, 4)
        all_ = np.concatenate([twice, more])
        all_[:, 2:] = np.maximum(all_[:, 2:], all_[:, :2] + 1)
        kinds = np.concatenate([labels, labels, rng.integers(1, 5, 3)])
        found.append({"boxes": all_, "labels": kinds, "scores": np.round(rng.random(len(all_)), 2)})
    return found, true


def scores(found, true):
    score = AveragePrecision()
    for pair in zip(found, true, strict=True):
        score.update(*pair)
    return score.compute()


def by_pycocotools(found, true):
    coco = pytest.importorskip("pycocotools.coco", reason="pycocotools is not installed")
    from pycocotools.cocoeval import COCOeval

    def rows(some):
        made = []
        for i, one in enumerate(some):
            for k, (box, label) in enumerate(zip(one["boxes"], one["labels"], strict=True)):
                sides = box[2:] - box[:2]
                row = {"id": len(made) + 1, "image_id": i, "category_id": int(label), "bbox": [*box[:2], *sides]}
                row |= {"area": sides.prod(), "iscrowd": int(one["iscrowd"][k])} if "iscrowd" in one else {}
                made.append(row | ({"score": one["scores"][k]} if "scores" in one else {}))
        return made

    with contextlib.redirect_stdout(io.StringIO()):
        truth = coco.COCO()
        truth.dataset = {"images": [{"id": i} for i in range(len(true))], "annotations": rows(true),
                         "categories": [{"id": i} for i in range(1, 5)]}  # fmt: skip
        truth.createIndex()
        evaluation = COCOeval(truth, truth.loadRes(rows(found)), "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return dict(zip(NAMES, evaluation.stats[:9], strict=True))


def test_recorded_scores():
    found = scores(*case(0))
    np.testing.assert_allclose([found[name] for name in NAMES], RECORDED, atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_scores_of_pycocotools(seed):
    found, want = scores(*case(seed)), by_pycocotools(*case(seed))
    np.testing.assert_allclose([found[name] for name in NAMES], [want[name] for name in NAMES], atol=1e-9)


def test_nothing_and_wrong_rows():
    nothing = {"boxes": [], "labels": [], "scores": []}
    assert set(scores([nothing], [nothing]).values()) == {-1.0}
    box = {"boxes": [[0, 0, 9, 9]], "labels": [1]}
    assert scores([nothing], [box])["map"] == 0.0
    with pytest.raises(DataError, match="each detection a score"):
        AveragePrecision().update(box, box)


def test_batches_make_the_whole():
    rng = np.random.default_rng(0)
    truth, predicted = rng.integers(0, 4, (6, 5, 7)), rng.integers(0, 3, (6, 5, 7))
    truth[0, 0] = 255
    score = MeanIoU(5)
    for i in range(6):
        score.update(flow.tensor(predicted[i]), truth[i])
    found = score.compute()
    counted = truth != 255
    for c in range(4):
        both = ((truth == c) & (predicted == c) & counted).sum()
        either = (((truth == c) | (predicted == c)) & counted).sum()
        assert abs(found["iou"][c] - both / either) < 1e-12
    assert np.isnan(found["iou"][4]) and abs(found["miou"] - found["iou"][:4].mean()) < 1e-12
    assert abs(found["accuracy"] - (truth == predicted)[counted].mean()) < 1e-12
    assert np.isnan(MeanIoU(3).compute()["miou"])


def test_wrong_values():
    with pytest.raises(DataError, match="truth from 0 to 7"):
        MeanIoU(5).update([0, 1], [0, 7])
    with pytest.raises(DataError, match="each pixel has both"):
        MeanIoU(5).update([0, 1], [0])
