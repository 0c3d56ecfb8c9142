"""Losses of detection: torchvision's values and gradients, reductions, wrong calls."""

import numpy as np
import pytest

import sbpjax as flow
from sbpjax.errors import OpError, OpValueError
from sbpjax.vision import ops
from tests.vision.ops.facts import FACTS, GIVEN, TOLERANCE, agrees
from tests.vision.ops.record import ROWS


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("name", ROWS)
def test_losses_of_boxes_of_torchvision(name, inside):
    agrees(name, lambda one, two: getattr(ops, name)(one[:7], two), "one", "two", inside=inside)


@pytest.mark.parametrize("inside", [False, True])
def test_focal_loss_of_torchvision(inside):
    agrees("focal", lambda x: ops.sigmoid_focal_loss(x, flow.tensor(GIVEN["truth"])), "logits", inside=inside)


def test_reductions():
    logits, truth = flow.tensor(GIVEN["logits"]), flow.tensor(GIVEN["truth"])
    for reduction in ("mean", "sum"):
        found = ops.sigmoid_focal_loss(logits, truth, reduction=reduction)
        np.testing.assert_allclose(found.numpy(), getattr(FACTS["focal"], reduction)(), **TOLERANCE)
    assert ops.generalized_box_iou_loss(flow.zeros(0, 4), flow.zeros(0, 4), "mean").item() == 0


def test_wrong_calls():
    with pytest.raises(OpValueError, match="alpha is from 0 to 1, or negative for none"):
        ops.sigmoid_focal_loss(flow.zeros(2), flow.zeros(2), alpha=2)
    with pytest.raises(OpValueError, match="a reduction is 'none', 'mean' or 'sum'"):
        ops.complete_box_iou_loss(flow.ones(2, 4), flow.ones(2, 4), "all")
    with pytest.raises(OpError, match="the last dim of boxes has 4 elements"):
        ops.distance_box_iou_loss(flow.ones(2, 3), flow.ones(2, 4))
