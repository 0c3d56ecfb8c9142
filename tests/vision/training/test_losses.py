"""Losses and clipping by rows: timm's values, in a graph too, and wrong shapes."""

import json

import numpy as np
import pytest

import sbpjax as flow
from sbpjax.errors import ConfigError, OpError
from sbpjax.vision import training
from tests.vision.training.record import DATA, inputs

FACTS = json.loads(DATA.read_text())
GIVEN = inputs()
LOSSES = {
    "smoothed": (training.LabelSmoothingCrossEntropy(0.2), "labels"),
    "soft": (training.SoftTargetCrossEntropy(), "shares"),
    "binary": (training.BinaryCrossEntropy(0.1), "labels"),
    "binary shares": (training.BinaryCrossEntropy(0.1, 0.2), "shares"),
    "binary sums": (training.BinaryCrossEntropy(0.1, sum_classes=True), "labels"),
}


@pytest.mark.parametrize("name", LOSSES)
def test_values_of_timm(name):
    loss, targets = LOSSES[name]

    class Graph(flow.nn.Graph):
        def build(self, logits, given):
            return loss(logits, given)

    pair = flow.tensor(GIVEN["logits"]), flow.tensor(GIVEN[targets])
    for found in (loss(*pair), Graph()(*pair)):
        np.testing.assert_allclose(found.item(), FACTS[name], rtol=1e-5)


@pytest.mark.parametrize("name", ["matrix", "vector", "kernel"])
def test_clipping_of_timm(name):
    parameter = flow.nn.Parameter(flow.tensor(GIVEN[name]))
    parameter.grad = flow.tensor(GIVEN[f"{name} gradient"])
    training.adaptive_clip_grad_([parameter, flow.nn.Parameter(flow.zeros(2))], 0.05)
    np.testing.assert_allclose(parameter.grad.numpy(), FACTS[name], rtol=1e-5)
    assert np.abs(parameter.grad.numpy() - GIVEN[f"{name} gradient"]).max() > 0


def test_wrong_calls():
    with pytest.raises(OpError, match="each logit has a share"):
        training.SoftTargetCrossEntropy()(flow.zeros(2, 3), flow.tensor([0, 1]))
    with pytest.raises(ConfigError, match="smoothing is from 0 to below 1"):
        training.LabelSmoothingCrossEntropy(1.0)
    with pytest.raises(ConfigError, match="both are above 0"):
        training.adaptive_clip_grad_([], 0)
