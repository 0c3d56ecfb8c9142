"""The layer with an adapter: the formula, in training and merged, in the layouts of the layer's matrix."""

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import nn
from sbpjax.models.layers import LoraLinear

X = np.random.default_rng(0).normal(size=(3, 8)).astype(np.float32)
A, B = (np.random.default_rng(i).normal(size=s).astype(np.float32) for i, s in ((1, (2, 8)), (2, (6, 2))))
SPLIT, WHOLE = flow.sbp.split, flow.sbp.broadcast


def formula(weight, bias):
    return X @ weight.T + bias + 1.5 * (X @ A.T) @ B.T


def test_it_starts_as_the_layer_and_is_the_formula():
    base = nn.Linear(8, 6)
    layer = LoraLinear(base, 2, 1.5)
    np.testing.assert_array_equal(layer(flow.tensor(X)).numpy(), base(flow.tensor(X)).detach().numpy())
    layer.set(A, B)
    want = formula(base.weight.detach().numpy(), base.bias.detach().numpy())
    np.testing.assert_allclose(layer(flow.tensor(X)).numpy(), want, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(layer.merged()(flow.tensor(X)).detach().numpy(), want, rtol=1e-5, atol=1e-5)
    layer(flow.tensor(X)).sum().backward()
    assert [name for name, p in layer.named_parameters() if p.grad is not None] == ["lora_a", "lora_b"]


@pytest.mark.parametrize("dim", [0, 1])
def test_a_split_matrix_moves_nothing_more(dim):
    place = flow.placement("cpu", [0, 1])
    base = nn.Linear(8, 6, bias=False).to_global(place, SPLIT(dim))
    layer = LoraLinear(base, 2, 1.5)
    layer.set(A, B)
    assert (layer.lora_a.sbp, layer.lora_b.sbp) == (((WHOLE,), (SPLIT(0),)) if dim == 0 else ((SPLIT(1),), (WHOLE,)))
    x = flow.tensor(X, placement=place, sbp=WHOLE if dim == 0 else SPLIT(1))
    with flow.boxing_policy("error"):
        y = layer(x)
    assert y.sbp == ((SPLIT(1),) if dim == 0 else (flow.sbp.partial_sum,))
    np.testing.assert_allclose(y.numpy(), formula(base.weight.detach().numpy(), 0), rtol=1e-5, atol=1e-5)
    assert layer.merged().weight.sbp == base.weight.sbp


def test_half_precision_has_wide_adapters_and_dropout_is_for_training():
    layer = LoraLinear(nn.Linear(8, 6).to(flow.bfloat16), 2, 1.0, dropout=0.5)
    assert layer.lora_a.dtype == flow.float32 and layer.merged().weight.dtype == flow.bfloat16
    layer.set(A, B)
    x = flow.tensor(X).to(flow.bfloat16)
    assert layer(x).dtype == flow.bfloat16 and not flow.equal(layer(x), layer(x))
    assert flow.equal(layer.eval()(x), layer(x))
