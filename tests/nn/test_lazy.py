"""Layers that learn their input's channels, and modules of quantisation."""

import copy

import numpy as np
import pytest
import torch

import sbpjax as flow
from sbpjax import nn
from tests.support.torch_layers import close

LAZY = [
    ("LazyLinear", (3,), (2, 5)),
    ("LazyConv2d", (4, 3), (2, 6, 5, 5)),
    ("LazyConvTranspose1d", (4, 2), (2, 3, 5)),
    ("LazyBatchNorm2d", (), (2, 3, 4, 4)),
    ("LazyInstanceNorm1d", (), (2, 3, 4)),
]


@pytest.mark.filterwarnings("ignore:Lazy modules are a new feature:UserWarning")  # PyTorch's
@pytest.mark.parametrize(("name", "args", "shape"), LAZY, ids=str)
def test_lazy_layers(name, args, shape):
    ours, theirs = getattr(nn, name)(*args), getattr(torch.nn, name)(*args)
    assert repr(ours) == repr(theirs)
    parameters = list(ours.parameters())
    assert all(isinstance(p, nn.UninitializedParameter) for p in parameters)
    out = ours(flow.ones(*shape))
    theirs(torch.ones(*shape))
    assert repr(ours) == repr(theirs) and type(ours).__name__ == type(theirs).__name__
    assert all(p is q and type(q) is nn.Parameter for p, q in zip(parameters, ours.parameters(), strict=True))
    for (key, p), q in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        assert tuple(p.shape) == tuple(q.shape), key
    out.sum().backward()


def test_lazy_layers_load_and_copy():
    layer = nn.LazyLinear(3)
    with pytest.raises(RuntimeError, match="uninitialized parameter"):
        tuple(layer.weight.shape)
    copied = copy.deepcopy(layer)
    layer.load_state_dict(nn.Linear(5, 3).state_dict())
    assert tuple(layer.weight.shape) == (3, 5) and layer(flow.ones(1, 5)).shape == (1, 3) and layer.in_features == 5
    assert copied(flow.ones(2, 7)).shape == (2, 3)


def test_observers_and_fake_quantisation():
    x = flow.tensor([[-2.54, 1.0], [0.031, 0.5]], requires_grad=True)
    scale, zero = nn.MinMaxObserver()(x)
    assert np.allclose(scale.numpy(), 0.02) and zero.tolist() == [0.0]
    steps = nn.Quantization()(x.detach(), scale, zero)
    assert steps.tolist() == [[-127.0, 50.0], [2.0, 25.0]]
    y = nn.FakeQuantization()(x, scale, zero)
    close(y, flow.tensor([[-2.54, 1.0], [0.04, 0.5]]))
    y.sum().backward()
    assert x.grad.tolist() == [[1.0, 1.0], [1.0, 1.0]]
    scale, zero = nn.MinMaxObserver(quantization_scheme="affine", per_layer_quantization=False)(x)
    assert scale.shape == (2,) and np.allclose(scale.numpy(), [3.54 / 255, 0.5 / 255], rtol=1e-5)
    affine = nn.FakeQuantization(quantization_scheme="affine")(x, scale, zero)
    assert np.abs(affine.detach().numpy() - x.detach().numpy()).max() <= 3.54 / 255
    with pytest.raises(ValueError, match="scheme"):
        nn.FakeQuantization(quantization_scheme="odd")


def test_moving_observer_and_quantised_convolution():
    observer = nn.MovingAverageMinMaxObserver(stop_update_after_iters=2, momentum=0.5)
    for high in (1.27, 2.27, 9.0):
        scale, _ = observer(flow.tensor([0.0, high]))
    assert np.allclose(scale.numpy(), 1.77 / 127) and observer.current_train_step.item() == 3
    flow.manual_seed(0)
    layer = nn.QatConv2d(2, 3, 3, padding=1, padding_mode="reflect")
    plain = nn.Conv2d(2, 3, 3, padding=1, padding_mode="reflect")
    plain.load_state_dict({k: v for k, v in layer.state_dict().items() if "observer" not in k})
    x = flow.randn(2, 2, 5, 5)
    a, b = layer(x), plain(x)
    assert 0 < (a - b).abs().max().item() < 0.1
    a.sum().backward()
    assert layer.weight.grad is not None and list(layer.state_dict())[:2] == ["weight", "bias"]
