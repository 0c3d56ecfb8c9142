"""Sequences, mappings and numbers by protocol are taken where lists, dicts and floats are."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import nn
from sbpjax._core.tensor.handle.plain_values import number_of, to_python_value
from sbpjax.nn import functional as F

HALF, TENTH, ONE = Fraction(1, 2), np.array(0.1), np.array(1)
GRID = flow.placement("cpu", [[0, 1], [2, 3]])
S0, B = flow.sbp.split(0), flow.sbp.broadcast


class Config(Sequence):
    """A list of a configuration: a sequence that is neither list nor tuple."""

    def __init__(self, *items):
        self.items = list(items)

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return Config(*self.items[index]) if isinstance(index, slice) else self.items[index]


class Table(Mapping):
    def __init__(self, items):
        self.items_ = dict(items)

    def __getitem__(self, key):
        return self.items_[key]

    def __iter__(self):
        return iter(self.items_)

    def __len__(self):
        return len(self.items_)


def image():
    return flow.arange(2 * 4 * 8 * 8).float().reshape(2, 4, 8, 8).sin()


def layer(cls):
    def run(*args, **options):
        flow.manual_seed(0)
        return cls(*args, **options)(image())

    return run


# Each is called with the class of sequences to use: a list, then one by protocol.
SIZES = {
    "zeros": lambda s: flow.zeros(s(2, 3)),
    "full": lambda s: flow.full(s(2, 3), 1.0),
    "new_zeros": lambda s: image().new_zeros(s(2, 3)),
    "reshape": lambda s: image().reshape(s(2, -1)),
    "view": lambda s: image().view(s(2, -1)),
    "permute": lambda s: image().permute(s(3, 2, 1, 0)),
    "expand": lambda s: flow.ones(1, 3).expand(s(2, 3)),
    "repeat": lambda s: flow.ones(1, 3).repeat(s(2, 3)),
    "tile": lambda s: flow.tile(flow.ones(1, 3), s(2, 3)),
    "sum": lambda s: image().sum(s(1, 2)),
    "logsumexp": lambda s: flow.logsumexp(image(), s(1, 2)),
    "flip": lambda s: image().flip(s(1, 2)),
    "roll": lambda s: flow.roll(image(), s(1, 2), s(0, 1)),
    "split": lambda s: image().split(s(1, 3), 1)[1],
    "squeeze": lambda s: flow.ones(1, 1, 3).squeeze(s(0, 1)),
    "tensordot": lambda s: flow.tensordot(image(), image(), s(s(0, 1), s(0, 1))),
    "cat": lambda s: flow.cat(s(image(), image())),
    "stack": lambda s: flow.stack(s(image(), image())),
    "tensor": lambda s: flow.tensor([s(1.0, 2.0), s(3.0, 4.0)]),
    "as_strided": lambda s: image().as_strided(s(2, 2), s(2, 1)),
    "index": lambda s: image()[s(0, 1)],
    "pad": lambda s: F.pad(image(), s(1, 1, 2, 2)),
    "Conv2d": lambda s: layer(nn.Conv2d)(4, 4, s(3, 3), stride=s(1, 1), padding=s(1, 1), dilation=s(1, 1)),
    "conv2d": lambda s: F.conv2d(image(), flow.ones(4, 4, 3, 3), stride=s(2, 1), padding=s(1, 1)),
    "MaxPool2d": lambda s: layer(nn.MaxPool2d)(s(2, 2), s(2, 2)),
    "avg_pool2d": lambda s: F.avg_pool2d(image(), s(2, 2)),
    "AdaptiveAvgPool2d": lambda s: layer(nn.AdaptiveAvgPool2d)(s(2, 2)),
    "LayerNorm": lambda s: layer(nn.LayerNorm)(s(8, 8)),
    "layer_norm": lambda s: F.layer_norm(image(), s(8, 8)),
    "interpolate": lambda s: F.interpolate(image(), size=s(4, 4)),
    "fold": lambda s: F.fold(F.unfold(image(), s(2, 2), stride=2), s(8, 8), s(2, 2), stride=s(2, 2)),
    "ModuleList": lambda s: layer(lambda *m: nn.Sequential(*nn.ModuleList(*m)))(s(nn.ReLU(), nn.Tanh())),
    "to_global": lambda s: flow.ones(4, 4).to_global(GRID, s(S0, B), grad_sbp=s(B, B)),
    "placement": lambda s: flow.ones(4, placement=flow.placement("cpu", s(s(0, 1), s(2, 3))), sbp=s(S0, B)),
}


@pytest.mark.parametrize("case", SIZES)
def test_sequences_are_taken_where_lists_are(case):
    found, wanted = SIZES[case](Config), SIZES[case](lambda *items: list(items))
    assert found.shape == wanted.shape and found.dtype == wanted.dtype
    np.testing.assert_array_equal(found.numpy(), wanted.numpy())


NUMBERS = {
    "full": lambda n: flow.full((2,), n(0.5)),
    "add": lambda n: flow.ones(2) + n(0.5),
    "subtract from": lambda n: n(0.5) - flow.ones(2),
    "power": lambda n: flow.full((2,), 3.0) ** n(0.5),
    "fill_": lambda n: flow.ones(2).fill_(n(0.5)),
    "setitem": lambda n: image().index_fill(0, flow.tensor([0]), 0.0).masked_fill(image() > 0, n(0.5)),
    "clamp": lambda n: image().clamp(0.0, n(0.5)),
    "where": lambda n: flow.where(image() > 0, n(0.5), 0.0),
    "leaky_relu": lambda n: F.leaky_relu(image(), n(0.5)),
    "softplus": lambda n: F.softplus(image(), n(0.5)),
    "lerp": lambda n: flow.lerp(image(), image() + 1, n(0.5)),
    "arange": lambda n: flow.arange(0, 2, n(0.5)),
    "linspace": lambda n: flow.linspace(0, n(0.5), 3),
    "LayerNorm": lambda n: layer(nn.LayerNorm)(8, eps=n(0.5)),
    "BatchNorm2d": lambda n: layer(nn.BatchNorm2d)(4, eps=n(0.5), momentum=n(0.5)),
    "label smoothing": lambda n: F.cross_entropy(image()[0, 0], flow.arange(8), label_smoothing=n(0.5)),
}


@pytest.mark.parametrize("number", [Fraction, Decimal, np.array, np.float32])
@pytest.mark.parametrize("case", NUMBERS)
def test_numbers_are_taken_where_floats_are(case, number):
    if case == "subtract from" and number is np.array:
        number = np.float64  # NumPy's arrays subtract themselves, element by element
    found, wanted = NUMBERS[case](number), NUMBERS[case](float)
    assert found.dtype == wanted.dtype or number in (np.array, np.float32)
    np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-6)


@pytest.mark.parametrize("graph", [False, True])
@pytest.mark.parametrize("betas", [Config(0.8, 0.95), Config(np.array(0.8), Fraction(19, 20)), [0.8, 0.95]])
def test_options_of_optimizers_by_protocol(betas, graph):
    def trained(lr, betas, weight_decay):
        flow.manual_seed(0)
        model = nn.Linear(4, 4)
        optimizer = flow.optim.AdamW(model.parameters(), lr=lr, betas=betas, weight_decay=weight_decay)

        class Step(nn.Graph):
            def __init__(self):
                super().__init__()
                self.model = model
                self.add_optimizer(optimizer)

            def build(self, x):
                loss = self.model(x).square().mean()
                loss.backward()
                return loss

        run = Step() if graph else None
        for _ in range(3):
            if run is not None:
                run(image()[0, 0, :, :4])
                continue
            optimizer.zero_grad()
            model(image()[0, 0, :, :4]).square().mean().backward()
            optimizer.step()
        optimizer.load_state_dict(Table(optimizer.state_dict()))
        return model.weight.detach().numpy()

    found = trained(np.array(0.1), betas, Fraction(1, 100))
    np.testing.assert_allclose(found, trained(0.1, (0.8, 0.95), 0.01), rtol=1e-6)


def test_mappings_are_taken_where_dicts_are():
    model = nn.ModuleDict(Table({"a": nn.Linear(2, 2)}))
    model.load_state_dict(Table(model.state_dict()))
    optimizer = flow.optim.SGD([Table({"params": Config(*model.parameters()), "lr": HALF})], lr=0.1)
    assert optimizer.param_groups[0]["lr"] == 0.5 and type(optimizer.param_groups[0]["lr"]) is float


def test_what_is_no_number_and_no_sequence_is_refused_as_before():
    with pytest.raises(TypeError, match="zeros"):
        flow.zeros(Config("a"))
    with pytest.raises(TypeError):
        flow.ones(2) + object()


def test_plain_returns_plain_values_themselves():
    value = [1, (2.0, "a"), {"b": None}]
    assert to_python_value(value) is value
    assert to_python_value(Config(TENTH, Config(HALF))) == [0.1, [0.5]]
    assert to_python_value(Table({"a": ONE})) == {"a": 1}
    assert number_of(np.ones(2)) is None and number_of("1") is None
