"""Data layers on the host, order between tensors, and PyTorch's places of layers."""

import importlib

import numpy as np
import pytest
import torch

import sbpjax as flow
from sbpjax import nn


def test_coins_and_images():
    coin = nn.CoinFlip(1000, random_seed=0, probability=0.25)
    drawn = coin()
    assert drawn.dtype == flow.int8 and abs(drawn.float().mean().item() - 0.25) < 0.05
    assert not np.array_equal(drawn.numpy(), coin().numpy())
    images = flow.arange(2 * 4 * 5 * 3).reshape(2, 4, 5, 3).to(flow.uint8)
    layer = nn.CropMirrorNormalize("RGB", crop_h=2, crop_w=3, crop_pos_y=1.0, mean=[1.0, 2.0, 3.0], std=[2.0])
    got = layer(images, flow.tensor([0, 1]))
    want = images.numpy()[:, 2:, 1:4].astype(np.float32)
    want[1] = want[1, :, ::-1]
    np.testing.assert_allclose(got.numpy(), ((want - [1, 2, 3]) / 2).transpose(0, 3, 1, 2))


def test_depend_changes_nothing():
    x, y = flow.ones(3, requires_grad=True), flow.ones(2, requires_grad=True)
    out = nn.functional.depend(x * 2, [y])
    out.sum().backward()
    assert out.tolist() == [2.0] * 3 and x.grad.tolist() == [2.0] * 3 and y.grad is None


def test_pytorchs_places_of_layers():
    for name in ("activation", "batchnorm", "container", "conv", "linear", "loss", "module", "pooling", "rnn", "utils"):
        ours = importlib.import_module(f"sbpjax.nn.modules.{name}")
        theirs = importlib.import_module(f"torch.nn.modules.{name}")
        for public in getattr(theirs, "__all__", ()):
            if public not in ("AdaptiveLogSoftmaxWithLoss", "Container", "consume_prefix_in_state_dict_if_present"):
                assert hasattr(ours, public) or public.startswith("LinearCross"), f"{name}.{public}"
    assert nn.modules.utils._pair(3) == (3, 3) and nn.modules.Linear is nn.Linear
    assert isinstance(nn.BatchNorm2d(2), nn.modules.batchnorm._BatchNorm)
    assert isinstance(nn.Conv2d(1, 1, 1), nn.modules.conv._ConvNd)


@pytest.mark.parametrize("name", ["uniform", "xavier_normal", "kaiming_uniform", "constant"])
def test_old_names_of_initialisers(name):
    weight = flow.zeros(4, 4)
    with pytest.warns(FutureWarning, match=name):
        getattr(nn.init, name)(weight, *([2.0] if name == "constant" else []))
    assert weight.abs().sum().item() > 0
    assert nn.init.calc_fan((8, 4, 3, 3), "fan_in", "NCHW") == 36
    assert torch.nn.init._calculate_fan_in_and_fan_out(torch.zeros(8, 4, 3, 3))[1] == nn.init.calc_fan(
        (8, 4, 3, 3), "fan_out", "NCHW"
    )
