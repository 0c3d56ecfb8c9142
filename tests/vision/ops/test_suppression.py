"""`nms` and `batched_nms`: torchvision's choice, eagerly and padded, one device and several."""

import numpy as np
import pytest

import sbpjax as flow
from sbpjax.errors import OpError, OpValueError
from sbpjax.vision import ops
from tests.vision.ops.facts import FACTS, GIVEN
from tests.vision.ops.record import THRESHOLDS

MANY = [GIVEN[name] for name in ("many", "scores", "classes")]


def padded(found, size):
    return np.concatenate([found, np.full(size, -1)])[:size]


@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_choice_of_torchvision(threshold):
    boxes, scores, classes = map(flow.tensor, MANY)
    assert ops.nms(boxes, scores, threshold).tolist() == FACTS[f"nms/{threshold}"].tolist()
    by_class = FACTS[f"batched_nms/{threshold}"]
    assert ops.batched_nms(boxes, scores, classes, threshold).tolist() == by_class.tolist()
    for size in (5, 120, 130):
        found, count = ops.nms(boxes, scores, threshold, size=size)
        assert found.tolist() == padded(FACTS[f"nms/{threshold}"], size).tolist()
        assert count.item() == min(size, len(FACTS[f"nms/{threshold}"]))
    assert ops.batched_nms(boxes, scores, classes, threshold, size=120)[0].tolist() == padded(by_class, 120).tolist()


def test_images_of_a_batch_stay_split_in_a_graph():
    class Graph(flow.nn.Graph):
        def build(self, *tensors):
            return ops.batched_nms(*tensors, 0.5, size=60)

    placement = flow.placement("cpu", [0, 1])
    reverse = [np.stack([x, x[::-1]]) for x in MANY]
    found, count = Graph()(*[flow.tensor(x, placement=placement, sbp=flow.sbp.split(0)) for x in reverse])
    assert found.sbp == count.sbp == (flow.sbp.split(0),)
    want = FACTS["batched_nms/0.5"]
    assert count.tolist() == [min(60, len(want))] * 2
    assert found[0].tolist() == padded(want, 60).tolist()
    assert found[1].tolist()[: len(want)] == (119 - want).tolist()[:60]


def test_global_boxes_give_a_global_choice():
    placement = flow.placement("cpu", [0, 1])
    boxes, scores, classes = [flow.tensor(x, placement=placement, sbp=flow.sbp.split(0)) for x in MANY]
    found = ops.batched_nms(boxes, scores, classes, 0.5)
    assert found.sbp == (flow.sbp.broadcast,) and found.tolist() == FACTS["batched_nms/0.5"].tolist()


def test_padding_empty_boxes_and_none():
    boxes = flow.tensor([[0.0, 0.0, 1.0, 1.0]] * 3 + [[2.0, 2.0, 2.0, 2.0]] * 2)
    scores = flow.tensor([0.1, 0.3, -float("inf"), 0.2, 0.15])
    found, count = ops.nms(boxes, scores, 0.5, size=4)
    assert found.tolist() == [1, 3, 4, -1] and count.item() == 3  # boxes without area drop nothing
    assert ops.nms(boxes[:0], scores[:0], 0.5).shape == (0,)
    chain = flow.tensor([[10.0 * i, 0.0, 10.0 * i + 15, 1.0] for i in range(40)])  # each drops the next but one stays
    assert ops.nms(chain, flow.arange(40.0, 0, -1), 0.1, size=40)[0].tolist() == [*range(0, 40, 2), *[-1] * 20]


def test_wrong_calls():
    boxes, scores, classes = map(flow.tensor, MANY)
    with pytest.raises(OpValueError, match="a share of an area is from 0 to 1"):
        ops.nms(boxes, scores, 50)
    with pytest.raises(OpError, match=r"boxes are \(K, 4\) and scores \(K,\)"):
        ops.nms(boxes, scores[:3], 0.5)
    with pytest.raises(OpError, match="each box has one class"):
        ops.batched_nms(boxes, scores, classes[:3], 0.5)
    with pytest.raises(OpValueError, match="a result has one row at least"):
        ops.nms(boxes, scores, 0.5, size=0)
