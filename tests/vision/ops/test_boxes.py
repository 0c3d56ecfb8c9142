"""Boxes: torchvision's values and gradients, forms of boxes, and what is said of wrong ones."""

import numpy as np
import pytest

import sbpjax as flow
from sbpjax.errors import OpError, OpValueError
from sbpjax.vision import ops
from tests.vision.ops.facts import FACTS, GIVEN, TOLERANCE, agrees
from tests.vision.ops.record import PAIRS


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("name", PAIRS)
def test_values_and_gradients_of_torchvision(name, inside):
    agrees(name, getattr(ops, name), "one", "two", inside=inside)


def test_a_split_of_the_boxes_stays():
    placement = flow.placement("cpu", [0, 1, 2])
    one = flow.tensor(GIVEN["one"], placement=placement, sbp=flow.sbp.split(0))
    two = flow.tensor(GIVEN["two"], placement=placement, sbp=flow.sbp.broadcast)
    found = ops.generalized_box_iou(one, two)
    assert found.sbp == (flow.sbp.split(0),)
    np.testing.assert_allclose(found.numpy(), FACTS["generalized_box_iou"], **TOLERANCE)


@pytest.mark.parametrize("form", ["xyxy", "xywh", "cxcywh"])
def test_forms_lead_back(form):
    boxes = flow.tensor(GIVEN["one"])
    there = ops.box_convert(boxes, "xyxy", form)
    np.testing.assert_allclose(ops.box_convert(there, form, "xyxy").numpy(), GIVEN["one"], **TOLERANCE)


def test_areas_clipping_small_ones():
    boxes = flow.tensor([[0.0, 0.0, 2.0, 3.0], [-1.0, 2.0, 9.0, 4.0], [1.0, 1.0, 1.5, 9.0]])
    assert ops.box_area(boxes).tolist() == [6, 20, 4]
    assert ops.box_area(boxes.half() * 100).tolist() == [60000, 200000, 40000]  # above the largest half number
    assert ops.clip_boxes_to_image(boxes, (3, 6)).tolist() == [[0, 0, 2, 3], [0, 2, 6, 3], [1, 1, 1.5, 3]]
    assert ops.remove_small_boxes(boxes, 1).tolist() == [0, 1]
    assert ops.box_iou(boxes[:0], boxes).shape == (0, 3)


def test_wrong_calls():
    with pytest.raises(OpValueError, match="a form is one of xyxy, xywh, cxcywh"):
        ops.box_convert(flow.zeros(1, 4), "xyxy", "xxyy")
    for call in (ops.box_area, lambda boxes: ops.box_iou(boxes, flow.zeros(1, 4))):
        with pytest.raises(OpError, match="the last dim of boxes has 4 elements"):
            call(flow.zeros(2, 5))
    with pytest.raises(OpError, match=r"boxes are \(..., N, 4\)"):
        ops.box_iou(flow.zeros(4), flow.zeros(1, 4))
