"""`quantize_weights`: values near those of the model, a quarter of its bytes, under any layout, saved and loaded."""

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import nn, sbp
from sbpjax.errors import OpTypeError, OpValueError
from sbpjax.nn.utils import quantize_weights

B, S0, S1 = sbp.broadcast, sbp.split(0), sbp.split(1)


def mlp():
    flow.manual_seed(0)
    return nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 8)))


def bytes_of(model):
    return sum(t.numel() * t.element_size() for t in model.state_dict().values())


@pytest.mark.parametrize(("dtype", "bound"), [(flow.int8, 0.02), (flow.float8_e4m3fn, 0.06)])
def test_values_are_near_and_bytes_a_quarter(dtype, bound):
    model, x = mlp(), flow.randn(16, 32)
    exact, bytes_before = model(x).detach().numpy(), bytes_of(model)
    assert quantize_weights(model, dtype) == ["0", "2.0", "2.1"]
    found = model(x).detach().numpy()
    assert 0 < np.linalg.norm(found - exact) / np.linalg.norm(exact) < bound
    assert bytes_of(model) < 0.32 * bytes_before
    assert str(dtype).split(".")[-1] in repr(model)
    assert [n for n, _ in model.named_parameters()] == ["0.bias", "2.0.bias", "2.1.bias"]


@pytest.mark.parametrize("graph", [False, True])
@pytest.mark.parametrize("before", [False, True], ids=["laid out after", "laid out before"])
def test_values_do_not_depend_on_layouts(before, graph):
    x, one, model = flow.randn(16, 32), mlp(), mlp()
    quantize_weights(one)
    where = flow.placement("cpu", [[0, 1], [2, 3]])
    if not before:
        quantize_weights(model)
    model.to_global(where, [B, B])
    if before:
        model[0].to_global(sbp=[B, S0])
        model[2][0].weight = nn.Parameter(model[2][0].weight.to_global(sbp=[B, S1]))
        quantize_weights(model)
        assert model[0].weight.sbp == (B, S0) and model[0].scale.sbp == (B, S0) and model[2][0].weight.sbp == (B, S1)

    class Infer(nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = model

        def build(self, x):
            return self.model(x)

    with flow.no_grad():
        found = (Infer() if graph else model)(x.to_global(where, [S0, B]))
    np.testing.assert_allclose(found.numpy(), one(x).detach().numpy(), rtol=1e-5, atol=1e-5)


def test_saved_and_loaded(tmp_path):
    model, x = mlp(), flow.randn(4, 32)
    quantize_weights(model)
    flow.save(model.state_dict(), tmp_path / "model")
    flow.manual_seed(1)
    other = mlp()
    quantize_weights(other)
    other.load_state_dict(flow.load(tmp_path / "model"))
    np.testing.assert_array_equal(other(x).detach().numpy(), model(x).detach().numpy())


def test_the_dtype_of_the_input_is_that_of_the_result_and_gradients_pass():
    layer = nn.QuantizedLinear(nn.Linear(8, 4, bias=False))
    assert layer.bias is None and layer(flow.randn(2, 8).bfloat16()).dtype == flow.bfloat16
    x = flow.randn(2, 8, requires_grad=True)
    layer(x).sum().backward()
    rows = layer.weight.float() * layer.scale[:, None]
    np.testing.assert_allclose(x.grad.numpy(), np.tile(rows.numpy().sum(0), (2, 1)), rtol=1e-4, atol=1e-6)


def test_what_is_skipped_stays():
    model = mlp()
    assert quantize_weights(model, skip=["2"]) == ["0"]
    assert type(model[2][0]) is nn.Linear


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: quantize_weights(mlp(), skip=["head"]), OpValueError, "head"),
        (lambda: quantize_weights(nn.Linear(2, 2)), OpValueError, "QuantizedLinear"),
        (lambda: quantize_weights(mlp(), flow.float16), OpTypeError, "int8 or float8_e4m3fn"),
        (lambda: nn.QuantizedLinear(nn.Conv1d(2, 2, 1)), OpTypeError, "nn.Linear"),
    ],
)
def test_misuse(call, error, text):
    with pytest.raises(error, match=text):
        call()
