"""Segmentation: torchvision's logits, losses and gradients, names in files, data parallel, learning, wrong calls."""

import numpy as np
import pytest

import sbpjax as flow
from sbpjax.errors import ConfigError, OpError
from sbpjax.vision.models.segmentation import FCN, DeepLabV3
from tests.vision.models.segmentation.alike import agrees_with_torchvision

LONG = ("deeplabv3_resnet50", "fcn_small", "fcn_resnet50")


def small(**options):
    flow.manual_seed(0)
    return FCN(3, flow.vision.create_model("resnet18", width=8, depths=(1, 1, 1, 1), output_stride=16), **options)


def halves(count=4, size=32):
    """Return images with a bright half, and masks: 1 where it is bright; of one image nothing is known."""
    rng = np.random.default_rng(0)
    masks = np.zeros((count, size, size), np.int64)
    masks[::2, : size // 2], masks[1::2, :, size // 2 :] = 1, 1
    images = masks[:, None] + 0.1 * rng.standard_normal((count, 3, size, size))
    masks[:, 14:18, 14:18] = 255
    return images.astype(np.float32), masks


class Step(flow.nn.Graph):
    def __init__(self, model):
        super().__init__()
        self.model = model
        self.add_optimizer(flow.optim.Adam(model.parameters(), lr=1e-2))

    def build(self, images, masks):
        loss = self.model.loss(images, masks)
        loss.backward()
        return loss


def losses(placed=None):
    model = small()
    if placed is not None:
        model.to_global(placed["placement"], sbp=flow.sbp.broadcast)
    step = Step(model)
    images, masks = (flow.tensor(x, **placed or {}) for x in halves())
    flow.manual_seed(1)  # of the dropout
    return [step(images, masks).item() for _ in range(8)]


def test_learns_the_same_on_two_devices():
    alone = losses()
    apart = losses({"placement": flow.placement("cpu", [0, 1]), "sbp": flow.sbp.split(0)})
    np.testing.assert_allclose(apart[0], alone[0], rtol=1e-5)
    np.testing.assert_allclose(apart[:3], alone[:3], rtol=1e-3)  # Adam divides by small numbers at first
    assert alone[-1] < 0.6 * alone[0] and apart[-1] < 0.6 * apart[0]


def test_names_are_those_of_torchvision():
    body = flow.vision.create_model("resnet18", width=8, depths=(1, 1, 1, 1))
    names = DeepLabV3(3, body).state_dict()
    assert {"backbone.layer1.0.conv1.weight", "classifier.0.convs.4.1.weight", "classifier.0.project.1.bias",
            "classifier.4.bias", "aux_classifier.4.weight"} <= names.keys()  # fmt: skip
    assert not any(name.startswith("backbone.fc") for name in names)
    assert not any("aux" in name for name in small(auxiliary=False).state_dict())


def test_wrong_calls():
    with pytest.raises(ConfigError, match="there is one class at least"):
        FCN(0)
    with pytest.raises(ConfigError, match="a backbone has two maps or more"):
        FCN(3, flow.nn.Linear(2, 2))
    with pytest.raises(ConfigError, match="output_stride is 8, 16 or 32, and 32 with deep_stem"):
        FCN(3, flow.vision.create_model("resnet18", output_stride=4))
    with pytest.raises(OpError, match=r"masks \(4, 1, 32, 32\)[\s\S]*masks\[:, 0\]"):
        images, masks = halves()
        small().loss(flow.tensor(images), flow.tensor(masks[:, None]))


@pytest.mark.parametrize(
    "kind", ["deeplabv3_small", *(pytest.param(kind, marks=pytest.mark.exhaustive) for kind in LONG)]
)
def test_as_torchvision(kind):
    agrees_with_torchvision(kind)
