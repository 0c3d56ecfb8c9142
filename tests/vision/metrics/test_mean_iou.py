"""`MeanIoU`: by hand, by batches, classes that occur nowhere, wrong values."""

import numpy as np
import pytest

import sbpjax as flow
from sbpjax.errors import DataError
from sbpjax.vision.metrics import MeanIoU


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
