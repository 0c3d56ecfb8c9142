"""Layers of series, images and volumes against PyTorch's: output, gradients, buffers, repr; local or split."""

import itertools

import numpy as np
import pytest
import torch

import sbpjax as flow
from sbpjax import nn
from tests.support.torch_layers import close, pair

LAYERS = [
    ("ConvTranspose1d", (4, 6, 3), {"stride": 2, "padding": 1, "output_padding": 1}, (4, 4, 5)),
    ("ConvTranspose2d", (4, 6, 3), {}, (4, 4, 5, 4)),
    ("ConvTranspose2d", (4, 6, (3, 2)), {"stride": 2, "groups": 2, "bias": False, "dilation": (1, 2)}, (4, 4, 5, 4)),
    ("ConvTranspose3d", (2, 3, 2), {"stride": 2}, (4, 2, 3, 2, 2)),
    ("InstanceNorm1d", (3,), {}, (4, 3, 6)),
    ("InstanceNorm2d", (3,), {"affine": True, "track_running_stats": True}, (4, 3, 4, 5)),
    ("InstanceNorm2d", (3,), {"eps": 1e-3}, (3, 4, 5)),
    ("InstanceNorm3d", (2,), {"affine": True}, (4, 2, 2, 3, 2)),
    ("LocalResponseNorm", (3,), {"alpha": 0.1}, (4, 5, 3, 2)),
    ("PixelShuffle", (2,), {}, (4, 8, 3, 2)),
    ("PixelUnshuffle", (2,), {}, (4, 2, 4, 6)),
    ("ChannelShuffle", (2,), {}, (4, 6, 3)),
    ("Upsample", (), {"scale_factor": 2}, (4, 3, 4, 5)),
    ("Upsample", (), {"size": (5, 7), "mode": "bilinear", "align_corners": False}, (4, 3, 4, 5)),
    ("Upsample", (), {"scale_factor": (1.5, 2.0), "mode": "bicubic"}, (4, 2, 4, 5)),
    ("Upsample", (), {"scale_factor": 2, "mode": "trilinear", "align_corners": True}, (4, 1, 2, 3, 2)),
    ("Upsample", (), {"size": 7, "mode": "nearest-exact"}, (4, 2, 5)),
    ("UpsamplingNearest2d", (), {"size": (6, 4)}, (4, 3, 4, 5)),
    ("UpsamplingBilinear2d", (), {"scale_factor": 2}, (4, 3, 4, 5)),
    ("Unfold", (2,), {"stride": 2, "padding": 1}, (4, 3, 4, 6)),
    ("Fold", ((4, 6), 2), {"stride": 2}, (4, 12, 6)),
    ("MaxPool3d", (2,), {"stride": 1}, (4, 2, 3, 4, 3)),
    ("AvgPool3d", (2,), {"ceil_mode": True}, (4, 2, 3, 4, 3)),
    ("AdaptiveAvgPool3d", ((2, 1, None),), {}, (4, 2, 3, 4, 3)),
    ("AdaptiveMaxPool1d", (3,), {}, (4, 3, 8)),
    ("AdaptiveMaxPool3d", (2,), {}, (4, 2, 3, 4, 3)),
    ("LPPool1d", (2, 3), {}, (4, 3, 9)),
    ("LPPool2d", (2, 2), {"ceil_mode": True}, (4, 3, 5, 4)),
    ("RReLU", (0.25, 0.25), {}, (4, 6)),
    ("Softmin", (1,), {}, (4, 6)),
    ("Softmax2d", (), {}, (4, 3, 2, 2)),
    ("AlphaDropout", (0.0,), {}, (4, 6)),
    ("FeatureAlphaDropout", (0.0,), {}, (4, 6, 2)),
    ("Dropout3d", (0.0,), {}, (4, 2, 2, 2, 2)),
    ("ConstantPad1d", (2, 3.5), {}, (4, 3, 5)),
    ("ConstantPad2d", ((1, 0, 2, 1), -1.0), {}, (4, 3, 5, 4)),
    ("ConstantPad3d", (1, 0.5), {}, (4, 1, 2, 2, 2)),
    ("ZeroPad1d", (1,), {}, (4, 3, 5)),
    ("ZeroPad2d", ((1, -1, 0, 2),), {}, (4, 3, 5, 4)),
    ("ZeroPad3d", (1,), {}, (4, 1, 2, 2, 2)),
    ("ReflectionPad1d", (2,), {}, (4, 3, 5)),
    ("ReflectionPad2d", ((1, 2, 3, 0),), {}, (4, 3, 5, 4)),
    ("ReflectionPad3d", (1,), {}, (4, 1, 2, 3, 2)),
    ("ReplicationPad1d", (2,), {}, (4, 3, 5)),
    ("ReplicationPad2d", ((1, 2, 3, 0),), {}, (4, 3, 5, 4)),
    ("ReplicationPad3d", (1,), {}, (4, 1, 2, 3, 2)),
    ("CircularPad1d", ((2, 1),), {}, (4, 3, 5)),
    ("CircularPad2d", ((1, 2, 3, 0),), {}, (4, 3, 5, 4)),
    ("CircularPad3d", (1,), {}, (4, 1, 2, 3, 2)),
]


@pytest.mark.parametrize(
    ("layer", "where"), list(zip(LAYERS, itertools.cycle(["local", "split", "split"]))),
    ids=lambda v: str(v).replace(" ", ""),
)  # fmt: skip
def test_layer_equals_torchs(layer, where):
    name, args, options, shape = layer
    ours, theirs = pair(name, args, options)
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    data = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    x, y = flow.tensor(data), torch.tensor(data)
    if where == "split":
        placement = flow.placement("cpu", [0, 1, 2, 3])
        ours.to_global(placement, flow.sbp.broadcast)
        x = x.to_global(placement, flow.sbp.split(0))
    x.requires_grad_()
    y.requires_grad_()
    a, b = ours(x), theirs(y)
    close(a, b, "output")
    weights = np.random.default_rng(1).standard_normal(tuple(b.shape)).astype(np.float32)
    cotangent = flow.tensor(weights)
    if where == "split":
        cotangent = cotangent.to_global(placement, flow.sbp.broadcast)
    (a * cotangent).sum().backward()
    (b * torch.tensor(weights)).sum().backward()
    close(x.grad, y.grad, "gradient of the input")
    for (key, p), q in zip(ours.named_parameters(), theirs.parameters()):
        close(p.grad, q.grad, f"gradient of {key}")
    for (key, p), q in zip(ours.named_buffers(), theirs.buffers()):
        close(p, q, key)
    ours.eval()
    theirs.eval()
    close(ours(x), theirs(y), "evaluation")


def test_transposed_convolution_of_a_given_size():
    ours, theirs = pair("ConvTranspose2d", (2, 3, 3), {"stride": 2, "padding": 1})
    x = np.random.default_rng(0).standard_normal((2, 2, 4, 5)).astype(np.float32)
    for size in ((8, 10), (7, 9), (2, 3, 8, 9)):
        close(ours(flow.tensor(x), output_size=size), theirs(torch.tensor(x), output_size=size))
    with pytest.raises(ValueError, match="valid sizes range"):
        ours(flow.tensor(x), output_size=(20, 20))
    with pytest.raises(ValueError, match="padding mode is supported"):
        nn.ConvTranspose1d(1, 1, 1, padding_mode="reflect")


def test_unpooling_undoes_pooling():
    x = np.random.default_rng(0).standard_normal((2, 3, 7, 6)).astype(np.float32)
    for package, tensor in ((nn, flow.tensor), (torch.nn, torch.tensor)):
        out, place = package.MaxPool2d(2, return_indices=True)(tensor(x))
        layer = package.MaxUnpool2d(2)
        result = layer(out, place, output_size=(7, 6))
        if package is nn:
            ours, text = result, repr(layer)
    close(ours, result)
    assert text == repr(layer)


def test_data_parallel_adds_a_prefix():
    model = nn.DataParallel(nn.Linear(2, 3))
    assert list(model.state_dict()) == ["module.weight", "module.bias"] and model(flow.ones(1, 2)).shape == (1, 3)
    state = model.state_dict()
    nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "module.")
    nn.Linear(2, 3).load_state_dict(state)


def test_cross_map_norm_is_local_response_norm():
    # PyTorch's never takes the first channel out of its sum again, and its gradient is not that of its value: the
    # first two of two channels are what both agree on.
    x = torch.randn(4, 2, 3, 2)
    options = {"alpha": 0.1, "beta": 0.5}
    found = nn.CrossMapLRN2d(3, **options)(flow.tensor(x.numpy()))
    close(found, torch.nn.CrossMapLRN2d(3, **options)(x))
    wide = flow.tensor(torch.randn(2, 7, 3, 2).numpy())
    close(nn.CrossMapLRN2d(5, **options)(wide), nn.LocalResponseNorm(5, **options)(wide))
