"""Every layer against PyTorch's: output, gradients of input and parameters, repr; local and with the batch split."""

import numpy as np
import pytest
import torch

import sbpjax as flow
from sbpjax import nn
from tests.support.torch_layers import close, pair

LAYERS = [
    ("Linear", (6, 5), {}, (8, 3, 6)),
    ("Linear", (6, 5), {"bias": False}, (8, 6)),
    ("Identity", (), {}, (8, 6)),
    ("Flatten", (), {}, (8, 3, 4)),
    ("Flatten", (), {"start_dim": 0, "end_dim": 1}, (8, 3, 4)),
    ("Unflatten", (1, (2, 3)), {}, (8, 6)),
    ("LayerNorm", (6,), {}, (8, 3, 6)),
    ("LayerNorm", ((3, 6),), {"eps": 1e-3, "bias": False}, (8, 3, 6)),
    ("LayerNorm", (6,), {"elementwise_affine": False}, (8, 6)),
    ("RMSNorm", (6,), {}, (8, 3, 6)),
    ("RMSNorm", (6,), {"eps": 1e-3, "elementwise_affine": False}, (8, 6)),
    ("GroupNorm", (2, 4), {}, (8, 4, 5)),
    ("GroupNorm", (4, 4), {"affine": False, "eps": 1e-3}, (8, 4, 5, 2)),
    ("BatchNorm1d", (5,), {}, (8, 5)),
    ("BatchNorm1d", (5,), {"momentum": None}, (8, 5, 3)),
    ("BatchNorm2d", (3,), {"momentum": 0.3, "affine": False}, (8, 3, 4, 5)),
    ("BatchNorm2d", (3,), {"track_running_stats": False}, (8, 3, 4, 5)),
    ("Conv1d", (4, 6, 3), {"padding": 1}, (8, 4, 9)),
    ("Conv2d", (4, 6, 3), {}, (8, 4, 7, 6)),
    ("Conv2d", (4, 6, (3, 2)), {"stride": 2, "padding": (1, 0), "dilation": 2, "bias": False}, (8, 4, 9, 8)),
    ("Conv2d", (4, 6, 3), {"groups": 2, "padding": "same"}, (8, 4, 7, 6)),
    ("Conv2d", (4, 6, 3), {"padding": 2, "padding_mode": "reflect"}, (8, 4, 7, 6)),
    ("Conv2d", (4, 6, 2), {"padding": "same", "padding_mode": "circular"}, (8, 4, 7, 6)),
    ("Conv3d", (2, 3, 2), {"padding": "valid"}, (8, 2, 4, 3, 5)),
    ("MaxPool1d", (3,), {}, (8, 3, 9)),
    ("MaxPool2d", (3,), {"stride": 2, "padding": 1}, (8, 3, 9, 8)),
    ("MaxPool2d", (2,), {"ceil_mode": True}, (8, 3, 7, 5)),
    ("AvgPool1d", (3,), {"stride": 2}, (8, 3, 9)),
    ("AvgPool2d", (3,), {"padding": 1, "count_include_pad": False}, (8, 3, 9, 8)),
    ("AvgPool2d", (2,), {"divisor_override": 3, "ceil_mode": True}, (8, 3, 7, 5)),
    ("AdaptiveAvgPool1d", (2,), {}, (8, 3, 9)),
    ("AdaptiveAvgPool2d", ((2, 3),), {}, (8, 3, 7, 8)),
    ("AdaptiveAvgPool2d", (1,), {}, (8, 3, 7, 8)),
    ("AdaptiveMaxPool2d", ((2, None),), {}, (8, 3, 7, 8)),
    ("ReLU", (), {}, (8, 6)),
    ("ReLU6", (), {}, (8, 6)),
    ("SiLU", (), {}, (8, 6)),
    ("Mish", (), {}, (8, 6)),
    ("Hardswish", (), {}, (8, 6)),
    ("Hardsigmoid", (), {}, (8, 6)),
    ("SELU", (), {}, (8, 6)),
    ("Tanh", (), {}, (8, 6)),
    ("Sigmoid", (), {}, (8, 6)),
    ("LogSigmoid", (), {}, (8, 6)),
    ("Softsign", (), {}, (8, 6)),
    ("Tanhshrink", (), {}, (8, 6)),
    ("GELU", (), {}, (8, 6)),
    ("GELU", (), {"approximate": "tanh"}, (8, 6)),
    ("LeakyReLU", (0.2,), {}, (8, 6)),
    ("ELU", (0.7,), {}, (8, 6)),
    ("CELU", (0.7,), {}, (8, 6)),
    ("Hardtanh", (-0.5, 0.7), {}, (8, 6)),
    ("Threshold", (0.1, 3.0), {}, (8, 6)),
    ("Softplus", (), {"beta": 2.0, "threshold": 1.0}, (8, 6)),
    ("Hardshrink", (0.3,), {}, (8, 6)),
    ("Softshrink", (0.3,), {}, (8, 6)),
    ("GLU", (), {"dim": 1}, (8, 6)),
    ("Softmax", (-1,), {}, (8, 6)),
    ("LogSoftmax", (0,), {}, (8, 6)),
    ("PReLU", (3,), {}, (8, 3, 5)),
]


@pytest.mark.parametrize("where", ["local", "split"])
@pytest.mark.parametrize(("name", "args", "options", "shape"), LAYERS, ids=lambda v: str(v).replace(" ", ""))
def test_layer_equals_torchs(name, args, options, shape, where):
    ours, theirs = pair(name, args, options)
    assert repr(ours) == repr(theirs)
    data = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    x, y = flow.tensor(data), torch.tensor(data)
    if where == "split":
        placement = flow.placement("cpu", [0, 1, 2, 3])
        ours.to_global(placement, flow.sbp.broadcast)
        x = x.to_global(placement, flow.sbp.split(0))
    x.requires_grad_()
    y.requires_grad_()
    for _ in range(2):  # twice: running statistics move
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


@pytest.mark.parametrize(
    "name",
    ["ReLU", "ReLU6", "SiLU", "Mish", "Hardswish", "Hardsigmoid", "SELU", "LeakyReLU", "ELU", "CELU", "Hardtanh"],
)
def test_inplace_activations_write_into_their_input(name):
    data = np.linspace(-4, 4, 11, dtype=np.float32)
    ours, theirs = flow.tensor(data), torch.tensor(data)
    result = getattr(nn, name)(inplace=True)(ours)
    assert result is ours
    close(ours, getattr(torch.nn, name)(inplace=True)(theirs))


BAD_OPTIONS = {
    "T.nn.GroupNorm(3, 4)": "must be divisible by num_groups",
    "T.nn.Conv2d(3, 4, 2, groups=2)": "in_channels must be divisible by groups",
    "T.nn.Conv2d(4, 4, 2, groups=0)": "groups must be a positive integer",
    "T.nn.Conv2d(4, 4, 2, stride=2, padding='same')": "strided",
    "T.nn.Conv2d(4, 4, 2, padding='half')": "Invalid padding string",
    "T.nn.Conv2d(4, 4, 2, padding_mode='mirror')": "padding_mode must be one of",
    "T.nn.BatchNorm2d(3)(T.ones(2, 3))": "expected 4D input",
    "T.nn.BatchNorm1d(3)(T.ones(2, 3, 4, 5))": "expected 2D or 3D input",
    "T.nn.MultiheadAttention(0, 2)": "greater than 0",
    "T.nn.Dropout(2.0)": "between 0 and 1",
    "T.nn.Dropout2d(-0.1)": "between 0 and 1",
    "T.nn.functional.dropout(T.ones(2), 1.5)": "between 0 and 1",
    "T.nn.functional.smooth_l1_loss(T.ones(2), T.ones(2), beta=-1.0)": "negative values for beta",
    "T.nn.functional.huber_loss(T.ones(2), T.ones(2), delta=0.0)": "non-positive values for delta",
    "T.nn.functional.batch_norm(T.ones(2, 3), None, None)": "running_mean and running_var",
    "T.nn.Sequential(T.nn.ReLU()) + [1]": "Sequential",
    "T.nn.utils.vector_to_parameters([1.0], [])": "Tensor",
    "T.nn.utils.clip_grad_norm_(bad(T), 1.0, error_if_nonfinite=True)": "non-finite",
    "T.nn.MultiheadAttention(4, 2)(*[T.ones(1, 1, 4)] * 3, is_causal=True)": "Need attn_mask",
}


def bad(package):
    """Return a parameter whose gradient is infinite."""
    parameter = package.nn.Parameter(package.ones(2))
    parameter.grad = package.full((2,), float("inf"))
    return [parameter]


@pytest.mark.parametrize("code", BAD_OPTIONS)
def test_bad_options(code):
    kinds = (TypeError, ValueError, RuntimeError)
    with pytest.raises(kinds) as expected:
        eval(code, {"T": torch, "bad": bad})
    with pytest.raises(expected.type, match=BAD_OPTIONS[code]) as caught:
        eval(code, {"T": flow, "bad": bad})
    assert all(part in str(caught.value) for part in ("(at ", "\n  seen: ", "\n  rule: ", "\n  fix:  "))


@pytest.mark.parametrize(
    ("make", "text"),
    [  # where torch asserts
        (lambda: nn.MultiheadAttention(7, 2), "divisible by num_heads"),
        (lambda: nn.Hardtanh(1.0, 0.0), "max_val is larger than min_val"),
        (lambda: nn.Embedding(3, 2, padding_idx=5), "within num_embeddings"),
        (lambda: nn.Embedding(3, 2, _weight=flow.ones(2, 2)), "Shape of weight does not match"),
        (lambda: nn.Embedding.from_pretrained(flow.ones(3)), "2-dimensional"),
        (lambda: nn.MSELoss(reduction="all"), "not a valid value for reduction"),  # torch: at the first call
        (lambda: nn.Softshrink(-1.0), "lambda must be greater"),
    ],
)
def test_bad_options_that_torch_tells_otherwise(make, text):
    with pytest.raises(ValueError, match=text) as caught:
        make()
    assert "\n  fix:  " in str(caught.value)
