"""Layers made or called with wrong arguments: the builtin class of PyTorch's error, told in four parts."""

import pytest
import torch

import sbpjax
from sbpjax import errors
from tests.op_specs import misuse
from tests.op_specs.engine.libraries import Local, Torch
from tests.op_specs.engine.spec import Spec
from tests.support.generate import call

# Each layer with arguments that are right.
LAYERS = {
    "Linear": call(3, 4),
    "Bilinear": call(3, 4, 5),
    "Conv1d": call(4, 6, 3, stride=1, padding=1, dilation=1, groups=2, padding_mode="zeros"),
    "Conv2d": call(4, 6, 3, stride=1, padding=1, dilation=1, groups=2, padding_mode="zeros"),
    "Conv3d": call(4, 6, 3, stride=1, padding=1, dilation=1, groups=2, padding_mode="zeros"),
    "ConvTranspose2d": call(4, 6, 3, stride=1, padding=1, output_padding=0, groups=2, padding_mode="zeros"),
    "BatchNorm1d": call(4, eps=1e-5),
    "BatchNorm2d": call(4, eps=1e-5),
    "LayerNorm": call((4,), eps=1e-5),
    "GroupNorm": call(2, 4),
    "InstanceNorm2d": call(4),
    "RMSNorm": call((4,)),
    "LocalResponseNorm": call(2),
    "Embedding": call(10, 3, padding_idx=1),
    "EmbeddingBag": call(10, 3, mode="sum"),
    "Dropout": call(0.5),
    "Dropout2d": call(0.5),
    "AlphaDropout": call(0.5),
    "RNN": call(3, 4, num_layers=2, nonlinearity="tanh", dropout=0.1),
    "LSTM": call(3, 4, num_layers=2, dropout=0.1, proj_size=2),
    "GRU": call(3, 4, num_layers=2, dropout=0.1),
    "LSTMCell": call(3, 4),
    "MultiheadAttention": call(4, 2, dropout=0.1),
    "TransformerEncoderLayer": call(4, 2, dim_feedforward=8, activation="relu"),
    "PixelShuffle": call(2),
    "Upsample": call(scale_factor=2, mode="nearest"),
    "MaxPool2d": call(2, stride=2),
    "AvgPool2d": call(2, stride=2),
    "AdaptiveAvgPool2d": call(2),
    "ReflectionPad2d": call(1),
    "ZeroPad2d": call(1),
    "Softmax": call(dim=1),
    "PReLU": call(1),
    "LeakyReLU": call(0.1),
    "ELU": call(1.0),
    "Threshold": call(0.1, 2.0),
    "Hardtanh": call(-1.0, 1.0),
    "Flatten": call(1, -1),
    "Unflatten": call(1, (2, 2)),
    "MSELoss": call(reduction="mean"),
    "L1Loss": call(reduction="mean"),
    "CrossEntropyLoss": call(ignore_index=-100, reduction="mean", label_smoothing=0.1),
    "NLLLoss": call(reduction="mean"),
    "BCELoss": call(reduction="mean"),
    "BCEWithLogitsLoss": call(reduction="mean"),
    "KLDivLoss": call(reduction="mean"),
    "HuberLoss": call(delta=1.0),
    "SmoothL1Loss": call(beta=1.0),
    "CTCLoss": call(blank=0),
    "MarginRankingLoss": call(margin=0.1),
    "MultiMarginLoss": call(p=1, margin=1.0),
    "TripletMarginLoss": call(margin=1.0, p=2.0),
    "CosineEmbeddingLoss": call(margin=0.1),
}

_TYPE = "a number of a wrong type: PyTorch divides or compares it, or takes any value for a wrong one; here a TypeError"
_ASSERTS = "PyTorch asserts; here it is a TypeError for a wrong type"
DIFFERENCES = {
    (misuse.CLASS, _TYPE): """
        Conv1d: a float for 0; a float for 1; a float for groups; a number for padding_mode
        Conv2d: a float for 0; a float for 1; a float for groups; a number for padding_mode
        Conv3d: a float for 0; a float for 1; a float for groups; a number for padding_mode
        ConvTranspose2d: a float for 0; a float for 1; a float for groups; a number for padding_mode
        GroupNorm: a float for 0; a float for 1
        RNN: too many; a number for nonlinearity; text for dropout
        LSTM: text for dropout
        GRU: text for dropout
        Upsample: text for scale_factor
        MultiMarginLoss: text for p; a float for p
        Embedding: a float for padding_idx
    """,
    (misuse.CLASS, _ASSERTS): """
        MultiheadAttention: a float for 0; a float for 1
        TransformerEncoderLayer: a float for 0; a float for 1
    """,
    (misuse.CLASS, "OneFlow's layer has factors of its own, one of which is needed"): """
        PixelShuffle: no arguments
    """,
}
LISTED = {
    (line.split(": ")[0].strip(), change): kind
    for (kind, _), lines in DIFFERENCES.items()
    for line in lines.strip().splitlines()
    for change in line.split(": ")[1].split("; ")
}


@pytest.mark.parametrize("name", LAYERS)
def test_constructor(name):
    spec, ours, peer = Spec(f"nn.{name}", lambda g: LAYERS[name]), Local(), Torch()
    for library in (ours, peer):
        args, kwargs, _ = library.build(LAYERS[name])
        library.find(spec.name)(*args, **kwargs)
    found = {what: misuse.outcome(spec, bad, ours, peer) for what, bad in misuse.wrong(LAYERS[name])}
    bad = {what: o.kind for what, o in found.items() if o is not None and o.kind != misuse.GOOD}
    assert bad == {change: kind for (layer, change), kind in LISTED.items() if layer == name}, found
    assert any(found.values())


def test_the_right_signature_is_shown():
    with pytest.raises(errors.OpTypeError, match=r"fix:  Conv2d\(in_channels, out_channels, kernel_size"):
        sbpjax.nn.Conv2d(3)


def test_what_a_users_layer_raises_goes_through():
    class Layer(sbpjax.nn.Linear):
        def __init__(self, size):
            super().__init__(size, self.no_such_size)

    with pytest.raises(AttributeError, match="no_such_size"):
        Layer(3)


WRONG = """
Linear(4, True)
Conv2d(2, True, 3)
ConvTranspose1d(2, True, 3)
BatchNorm1d(True)
LayerNorm(True)
Embedding(True, 4)
PReLU(True)
RNN(4, 4, bias='x')
LSTM(4, 4, bias=2)
GRU(4, 4, batch_first='x')
HuberLoss('mean', 'x')
HuberLoss('mean', None)
Unflatten(1, 'x')
GroupNorm(0, 4)
GroupNorm(3, 4)
""".strip().splitlines()


@pytest.mark.parametrize("layer", WRONG)
def test_a_size_or_an_option_of_a_wrong_type_is_refused(layer):
    with pytest.raises((TypeError, ValueError, ZeroDivisionError)) as wanted:
        eval(f"nn.{layer}", {"nn": torch.nn})
    with pytest.raises(ValueError if wanted.type is ZeroDivisionError else wanted.type, match="fix: "):
        eval(f"nn.{layer}", {"nn": sbpjax.nn})


def test_a_cell_without_state_is_made():
    assert sbpjax.nn.GRUCell(4, 0).weight_hh.shape == torch.nn.GRUCell(4, 0).weight_hh.shape
