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


def indices(shape, high):
    return np.random.default_rng(0).integers(0, high, shape)


@pytest.mark.parametrize("where", ["local", "split rows", "split features", "split batch"])
@pytest.mark.parametrize("options", [{}, {"padding_idx": 2}, {"scale_grad_by_freq": True}, {"max_norm": 1.5}], ids=str)
def test_embedding(options, where):
    ours, theirs = pair("Embedding", (8, 4), options)
    assert repr(ours) == repr(theirs)
    index = indices((4, 3), 8)
    x = flow.tensor(index)
    if where != "local":
        placement = flow.placement("cpu", [0, 1, 2, 3])
        sbp = {"split rows": flow.sbp.split(0), "split features": flow.sbp.split(1)}
        ours.to_global(placement, sbp.get(where, flow.sbp.broadcast))
        x = x.to_global(placement, flow.sbp.split(0) if where == "split batch" else flow.sbp.broadcast)
    a, b = ours(x), theirs(torch.tensor(index))
    close(a, b)
    (a * a).sum().backward()
    (b * b).sum().backward()
    close(ours.weight.grad, theirs.weight.grad)
    close(ours.weight, theirs.weight)


def test_embedding_from_pretrained():
    table = flow.arange(6).reshape(3, 2).to(flow.float32)
    layer = nn.Embedding.from_pretrained(table)
    assert not layer.weight.requires_grad and layer(flow.tensor([2, 0])).tolist() == [[4.0, 5.0], [0.0, 1.0]]
    with pytest.raises(ValueError, match="must be within num_embeddings"):
        nn.Embedding(3, 2, padding_idx=3)


LOSSES = [
    ("MSELoss", {}, "float"),
    ("L1Loss", {}, "float"),
    ("SmoothL1Loss", {"beta": 0.5}, "float"),
    ("HuberLoss", {"delta": 0.5}, "float"),
    ("CrossEntropyLoss", {}, "index"),
    ("CrossEntropyLoss", {"ignore_index": 1, "label_smoothing": 0.1}, "index"),
    ("CrossEntropyLoss", {"weight": True}, "index"),
    ("CrossEntropyLoss", {}, "probability"),
    ("NLLLoss", {"weight": True}, "index"),
    ("BCELoss", {}, "unit"),
    ("BCEWithLogitsLoss", {"pos_weight": True}, "probability"),
    ("KLDivLoss", {"log_target": False}, "probability"),
]


@pytest.mark.filterwarnings("ignore:reduction. 'mean' divides:UserWarning")  # PyTorch's, on KLDivLoss
@pytest.mark.parametrize("where", ["local", "split batch", "split classes"])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize(("name", "options", "kind"), LOSSES, ids=str)
def test_loss_equals_torchs(name, options, kind, reduction, where):
    rng = np.random.default_rng(0)
    data = rng.standard_normal((8, 4)).astype(np.float32)
    target = {
        "float": rng.standard_normal((8, 4)).astype(np.float32),
        "index": indices((8,), 4),
        "probability": rng.dirichlet(np.ones(4), 8).astype(np.float32),
        "unit": rng.random((8, 4)).astype(np.float32),
    }[kind]
    if kind == "unit":
        data = 1 / (1 + np.exp(-data))
    weight = np.array([0.5, 1.0, 2.0, 0.0], np.float32)
    mine = {k: flow.tensor(weight) if v is True else v for k, v in options.items()}
    other = {k: torch.tensor(weight) if v is True else v for k, v in options.items()}
    ours = getattr(nn, name)(**mine, reduction=reduction)
    theirs = getattr(torch.nn, name)(**other, reduction=reduction)
    x, t = flow.tensor(data), flow.tensor(target)
    if where != "local":
        placement = flow.placement("cpu", [0, 1, 2, 3])
        ours.to_global(placement, flow.sbp.broadcast)
        x = x.to_global(placement, flow.sbp.split(0 if where == "split batch" else 1))
        t = t.to_global(placement, flow.sbp.split(0) if where == "split batch" else flow.sbp.broadcast)
    x.requires_grad_()
    y = torch.tensor(data, requires_grad=True)
    a, b = ours(x, t), theirs(y, torch.tensor(target))
    close(a, b)
    a.sum().backward()
    b.sum().backward()
    close(x.grad, y.grad)


def test_losses_check_their_reduction():
    with pytest.raises(ValueError, match="not a valid value for reduction"):
        nn.MSELoss(reduction="average")


def test_kl_div_batchmean():
    x, t = np.log(np.full((4, 2), 0.5, np.float32)), np.array([[0.1, 0.9]] * 4, np.float32)
    ours = nn.KLDivLoss(reduction="batchmean")(flow.tensor(x), flow.tensor(t))
    close(ours, torch.nn.KLDivLoss(reduction="batchmean")(torch.tensor(x), torch.tensor(t)))


ATTENTION = [
    {},
    {"batch_first": True},
    {"bias": False, "kdim": 6, "vdim": 4, "batch_first": True},
    {"add_bias_kv": True, "add_zero_attn": True},
]


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("masks", [(), ("padding",), ("causal",), ("padding", "causal")], ids=str)
@pytest.mark.parametrize("options", ATTENTION, ids=str)
def test_multihead_attention_equals_torchs(options, masks, need_weights):
    ours, theirs = pair("MultiheadAttention", (8, 2), options)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    rng = np.random.default_rng(0)
    length, source, batch = 3, 5, 4
    arrays = [
        rng.standard_normal(
            (batch, n, width) if options.get("batch_first") else (n, batch, width),
        ).astype(np.float32)
        for n, width in ((length, 8), (source, options.get("kdim", 8)), (source, options.get("vdim", 8)))
    ]
    given = {}
    if "padding" in masks:
        given["key_padding_mask"] = np.arange(source)[None] > np.array([[4], [2], [3], [1]])
    if "causal" in masks:
        given["attn_mask"] = np.triu(np.ones((length, source), bool), 2)
    a, wa = ours(*map(flow.tensor, arrays), **{k: flow.tensor(v) for k, v in given.items()}, need_weights=need_weights)
    b, wb = theirs(
        *map(torch.tensor, arrays), **{k: torch.tensor(v) for k, v in given.items()}, need_weights=need_weights
    )
    close(a, b, "output")
    assert (wa is None) == (wb is None)
    if wa is not None:
        close(wa, wb, "weights")
    a.sum().backward()
    b.sum().backward()
    for (key, p), q in zip(ours.named_parameters(), theirs.parameters()):
        close(p.grad, q.grad, key)


def test_multihead_attention_of_one_sample():
    ours, theirs = pair("MultiheadAttention", (8, 2), {})
    x = np.random.default_rng(0).standard_normal((3, 8)).astype(np.float32)
    a, wa = ours(flow.tensor(x), flow.tensor(x), flow.tensor(x), average_attn_weights=False)
    b, wb = theirs(torch.tensor(x), torch.tensor(x), torch.tensor(x), average_attn_weights=False)
    close(a, b)
    close(wa, wb)


def test_dropout_scales_what_stays_and_does_nothing_in_evaluation():
    layer = nn.Dropout(0.25)
    x = flow.ones(4000)
    flow.manual_seed(0)
    y = layer(x).numpy()
    kept = y != 0
    assert set(np.unique(y)) == {np.float32(0), np.float32(1 / 0.75)}
    assert abs(kept.mean() - 0.75) < 0.03  # four standard deviations
    assert layer.eval()(x) is x
    assert (nn.Dropout(1.0)(x).numpy() == 0).all()
    channels = nn.Dropout2d(0.5)(flow.ones(8, 16, 2, 3)).numpy().reshape(8, 16, 6)
    assert (channels.min(-1) == channels.max(-1)).all() and 0 < (channels[..., 0] == 0).mean() < 1
    with pytest.raises(ValueError, match="between 0 and 1"):
        nn.Dropout(1.5)


@pytest.mark.parametrize("sbp", ["S0", "S1", "B", "P"])
def test_dropout_draws_the_same_mask_under_every_layout(sbp):
    placement = flow.placement("cpu", [0, 1, 2, 3])
    data = np.random.default_rng(0).standard_normal((8, 6)).astype(np.float32)
    flow.manual_seed(3)
    local = flow.tensor(data, requires_grad=True)
    expected = nn.Dropout(0.5)(local)
    flow.manual_seed(3)
    laid_out = flow.tensor(data).to_global(placement, sbp).requires_grad_()
    found = nn.Dropout(0.5)(laid_out)
    close(found, expected)
    found.sum().backward()
    expected.sum().backward()
    close(laid_out.grad, local.grad)


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
