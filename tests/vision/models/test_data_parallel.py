"""Training under data parallelism is that of one device: batch statistics, dropout and stochastic depth included."""

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import nn, optim
from sbpjax.nn import functional as F
from sbpjax.vision.models.resnet import ResNet, ResNetConfig
from sbpjax.vision.models.swin import Swin, SwinConfig

MODELS = {
    "resnet": (ResNet, ResNetConfig(depths=(1, 1), bottleneck=False, width=8, num_classes=5, drop_path_rate=0.5)),
    "swin": (
        Swin,
        SwinConfig(
            image_size=16, patch_size=2, window=4, depths=(2,), heads=(2,), width=8, num_classes=5,
            drop_rate=0.3, drop_path_rate=0.5,
        ),
    ),
}  # fmt: skip


class Step(nn.Graph):
    def __init__(self, model):
        super().__init__()
        self.model = model
        self.add_optimizer(optim.SGD(model.parameters(), lr=0.05, momentum=0.9))

    def build(self, images, labels):
        loss = F.cross_entropy(self.model(images), labels)
        loss.backward()
        return loss


def trained(name, devices, steps=2):
    flow.manual_seed(0)
    made, config = MODELS[name]
    model, options = made(config), {}
    if devices > 1:
        options = {"placement": flow.placement("cpu", list(range(devices))), "sbp": flow.sbp.split(0)}
        model.to_global(options["placement"], flow.sbp.broadcast)
    step, rng, found = Step(model), np.random.default_rng(0), []
    flow.manual_seed(1)
    for _ in range(steps):
        images, labels = rng.normal(size=(8, 3, 16, 16)).astype(np.float32), rng.integers(0, 5, 8)
        found.append(step(flow.tensor(images, **options), flow.tensor(labels, **options)).item())
    return found, {name: value.numpy() for name, value in model.state_dict().items()}


@pytest.mark.parametrize("name", MODELS)
def test_losses_and_state_are_those_of_one_device(name):
    alone, state = trained(name, 1)
    found, divided = trained(name, 4)
    np.testing.assert_allclose(found, alone, rtol=1e-5)
    for key, value in state.items():
        np.testing.assert_allclose(divided[key], value, rtol=1e-4, atol=1e-5, err_msg=key)
