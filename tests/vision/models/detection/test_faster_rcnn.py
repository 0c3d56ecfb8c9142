"""Faster R-CNN: torchvision's losses, gradients and detections; data parallel; images without a box; wrong calls."""

import numpy as np
import pytest

import sbpjax as flow
from sbpjax.errors import OpError
from sbpjax.vision.models.detection import FasterRCNN
from tests.vision.models.detection.alike import (
    Detections,
    Losses,
    batch,
    detections_agree,
    facts,
    is_one_program,
    losses_agree,
    model,
)


def test_losses_of_torchvision():
    losses_agree("faster_rcnn", Losses(model("faster_rcnn"))(*batch("faster_rcnn")))


@pytest.mark.exhaustive
def test_losses_of_torchvision_and_a_step_as_one_program():
    detector = model("faster_rcnn")
    optimizer = flow.optim.SGD(detector.parameters(), lr=1.0)
    step = Losses(detector, optimizer)
    given = batch("faster_rcnn")
    before = {name: parameter.numpy().copy() for name, parameter in detector.named_parameters()}
    losses_agree("faster_rcnn", step(*given))
    moved = {name: before[name] - parameter.numpy() for name, parameter in detector.named_parameters()}
    for name in ("rpn.head.cls_logits.weight", "roi_heads.box_predictor.bbox_pred.weight",
                 "backbone.fpn.inner_blocks.1.0.weight", "backbone.body.layer2.0.conv1.weight"):  # fmt: skip
        np.testing.assert_allclose(np.linalg.norm(moved[name]), facts("faster_rcnn")[f"norm/{name}"], rtol=1e-2)
    is_one_program(step, given)


@pytest.mark.exhaustive
def test_detections_of_torchvision():
    detections_agree("faster_rcnn", Detections(model("faster_rcnn").eval())(batch("faster_rcnn")[0]))


@pytest.mark.exhaustive
def test_data_parallel():
    placement = flow.placement("cpu", [0, 1])
    detector = model("faster_rcnn").to_global(placement, sbp=flow.sbp.broadcast)
    given = batch("faster_rcnn", placement=placement, sbp=flow.sbp.split(0))
    losses_agree("faster_rcnn", Losses(detector)(*given))
    found = Detections(detector)(given[0])
    assert found["boxes"].sbp == (flow.sbp.split(0),)
    detections_agree("faster_rcnn", found)


@pytest.mark.exhaustive
def test_images_without_a_box():
    detector = FasterRCNN(3, 18)
    losses = Losses(detector)(flow.zeros(1, 3, 64, 64), flow.zeros(1, 4, 4), flow.full((1, 4), -1))
    assert losses["box_reg"].item() == 0 and all(np.isfinite(loss.item()) for loss in losses.values())


def test_wrong_calls():
    with pytest.raises(OpError, match=r"images are \(B, 3, H, W\)"):
        FasterRCNN.forward(FasterRCNN.__new__(FasterRCNN), flow.zeros(3, 64, 64))  # before any of its layers is asked
