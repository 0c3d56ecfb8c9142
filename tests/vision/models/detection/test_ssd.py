"""SSD300: torchvision's losses, gradients and detections; data parallel; wrong calls."""

import numpy as np
import pytest

import sbpjax as flow
from sbpjax.errors import ConfigError, OpError
from sbpjax.vision.models.detection import SSD300
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


@pytest.mark.exhaustive
def test_losses_of_torchvision_and_a_step_as_one_program():
    detector = model("ssd")
    optimizer = flow.optim.SGD(detector.parameters(), lr=1.0)
    step = Losses(detector, optimizer)
    given = batch("ssd")
    before = {name: parameter.numpy().copy() for name, parameter in detector.named_parameters()}
    losses_agree("ssd", step(*given))
    moved = {name: before[name] - parameter.numpy() for name, parameter in detector.named_parameters()}
    for name in ("head.classification_head.module_list.2.weight", "head.regression_head.module_list.1.bias",
                 "backbone.scale_weight", "backbone.extra.0.7.1.bias"):  # fmt: skip
        np.testing.assert_allclose(np.linalg.norm(moved[name]), facts("ssd")[f"norm/{name}"], rtol=1e-2)
    is_one_program(step, given)


def test_detections_of_torchvision():
    detections_agree("ssd", Detections(model("ssd").eval())(batch("ssd")[0]))


@pytest.mark.exhaustive
def test_data_parallel():
    placement = flow.placement("cpu", [0, 1])
    detector = model("ssd").to_global(placement, sbp=flow.sbp.broadcast)
    given = batch("ssd", placement=placement, sbp=flow.sbp.split(0))
    losses_agree("ssd", Losses(detector)(*given))
    found = Detections(detector)(given[0])
    assert found["boxes"].sbp == (flow.sbp.split(0),)
    detections_agree("ssd", found)


def test_wrong_calls():
    with pytest.raises(ConfigError, match="class 0 is the background"):
        SSD300(1)
    with pytest.raises(OpError, match=r"images are \(B, 3, 300, 300\)"):
        SSD300.forward(SSD300.__new__(SSD300), flow.zeros(1, 3, 64, 64))  # before any of its layers is asked
