"""Linear layers with 8-bit products: close to float32, alike in every layout, 8 bits wide on an absent GPU."""

import re

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import sbpjax as flow
from sbpjax import nn, optim, sbp
from sbpjax._core.ops.layers import fp8
from sbpjax.errors import GraphConfigError, OpTypeError
from sbpjax.sbp import placement

F = nn.functional
B, S0, S1 = sbp.broadcast, sbp.split(0), sbp.split(1)


def distance(found, expected):
    return np.linalg.norm(np.asarray(found, "f8") - expected) / np.linalg.norm(expected)


@pytest.mark.parametrize("size", [1e-20, 1.0, 1e20])
@pytest.mark.parametrize("dtype", [fp8.FORWARD, fp8.BACKWARD], ids=str)
def test_a_tensor_fills_the_format_whatever_its_size(dtype, size):
    x = np.float32(size) * np.random.default_rng(0).standard_normal((8, 16)).astype("f")
    small, back = fp8.scale_to_fp8(x, dtype)
    bits = ml_dtypes.finfo(dtype).nmant
    assert small.dtype == dtype and np.abs(np.asarray(small, "f")).max() == float(ml_dtypes.finfo(dtype).max)
    large = np.abs(x) > np.abs(x).max() / 100  # the others are where the format has fewer bits
    np.testing.assert_allclose((np.asarray(small, "f") * back)[large], x[large], rtol=2.0 ** -(bits + 1))


def test_zeros_stay_zeros_and_what_is_not_finite_shows():
    small, back = fp8.scale_to_fp8(np.zeros((4, 4), "f"), fp8.FORWARD)
    assert not np.asarray(small, "f").any() and back == 1
    for bad in (np.inf, np.nan):
        x = np.ones((16, 16), "f")
        x[0, 0] = bad
        assert not np.isfinite(fp8.linear_fp8(x, np.ones((16, 16), "f"))).all()


def test_the_product_is_that_of_the_rounded_tensors():
    shapes = (2, 16, 32), (48, 32), (2, 16, 48)
    x, w, grad = (np.random.default_rng(i).standard_normal(s).astype("f") for i, s in enumerate(shapes))
    out, vjp = jax.vjp(fp8.linear_fp8, x, w)
    dx, dw = vjp(jnp.asarray(grad))

    def rounded(x, dtype):
        small, back = fp8.scale_to_fp8(x, dtype)
        return np.asarray(small, "f8") * float(back)

    x, w, grad = rounded(x, fp8.FORWARD), rounded(w, fp8.FORWARD), rounded(grad, fp8.BACKWARD)
    assert distance(out, x @ w.T) < 1e-6
    assert distance(dx, grad @ w) < 1e-6
    assert distance(dw, np.einsum("bto,bti->oi", grad, x)) < 1e-6


def of_linear(dtype):
    flow.manual_seed(0)
    layer, x = nn.Linear(64, 48), flow.randn(32, 64, requires_grad=True)
    with flow.autocast("cpu", dtype=dtype or flow.bfloat16, enabled=dtype is not None):
        y = layer(x)
    y.float().square().mean().backward()
    return y, x.grad, layer.weight.grad, layer.bias.grad


def test_autocast_rounds_products_to_three_bits_and_gradients_to_two():
    exact = [t.float().numpy() for t in of_linear(None)]
    found = of_linear("fp8")
    assert found[0].dtype == flow.bfloat16 and all(t.dtype == flow.float32 for t in found[1:])
    assert all(0.01 < distance(a.float().numpy(), b) < 0.07 for a, b in zip(found, exact, strict=True))
    with flow.autocast("cpu", dtype=flow.float8_e4m3fn):
        assert flow.get_autocast_dtype("cpu") == flow.float8_e4m3fn


@pytest.mark.parametrize("shape", [(32, 40), (512, 32)], ids=["no multiple of 16", "a vocabulary's head"])
def test_other_linear_layers_stay_in_bfloat16(shape):
    w, x = flow.randn(*shape), flow.randn(16, shape[1])
    with flow.autocast("cpu", dtype="fp8"):
        found = F.linear(x, w)
    with flow.autocast("cpu", dtype=flow.bfloat16):
        np.testing.assert_array_equal(found.float().numpy(), F.linear(x, w).float().numpy())


class Step(nn.Graph):
    def __init__(self, model, dtype):
        super().__init__()
        self.model = model
        self.add_optimizer(optim.AdamW(model.parameters(), lr=3e-3))
        self.config.enable_amp(dtype is not None, dtype=dtype or flow.bfloat16)

    def build(self, x, y):
        loss = F.mse_loss(self.model(x).float(), y)
        loss.backward()
        return loss


def mlp():
    flow.manual_seed(1)
    return nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32))


def curve(model, dtype, where=None, rows=B):
    flow.manual_seed(2)
    x = flow.randn(64, 32) if where is None else flow.randn(64, 32, placement=where, sbp=rows)
    step = Step(model, dtype)
    return [step(x, x.roll(1, dims=1)).item() for _ in range(20)]


def test_a_graph_learns_as_in_float32():
    exact, found = curve(mlp(), None), curve(mlp(), "fp8")
    assert exact[-1] < 0.7 * exact[0]
    np.testing.assert_allclose(found, exact, rtol=1e-2)


@pytest.mark.parametrize("tensor_parallel", [False, True])
def test_values_do_not_depend_on_layouts(tensor_parallel):
    where = flow.placement("cpu", [[0, 1], [2, 3]])
    model = mlp().to_global(where, [B, B])
    if tensor_parallel:
        model[0].to_global(sbp=[B, S0])
        model[2].weight = nn.Parameter(model[2].weight.to_global(sbp=[B, S1]))
    np.testing.assert_allclose(curve(model, "fp8", where, [S0, B]), curve(mlp(), "fp8"), rtol=2e-3)


def test_another_dtype_is_an_error():
    with pytest.raises(OpTypeError, match="bfloat16, float16 or fp8"):
        flow.autocast("cpu", dtype=flow.float8_e5m2)
    with pytest.raises(GraphConfigError, match="bfloat16 or fp8"):
        Step(mlp(), "fp4")


@pytest.mark.aot
def test_products_of_an_absent_gpu_take_8_bits():
    pytest.importorskip("jax_cuda12_plugin", reason="needs jax-cuda12-plugin and jax-cuda12-pjrt (extra `aot`)")
    where = placement.topology("h100:8", [8])
    with flow.abstract():
        model = nn.Sequential(nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 1024)).to_global(where, B)
        x = flow.zeros(8192, 1024, placement=where, sbp=S0)
    text = Step(model, "fp8").hlo(x, x)
    # One fusion for each product, two forward and three backward.
    fused = re.findall(r"^%gemm_fusion[\w.]* \(.*: f8e\w+\[.*: f8e4m3fn\[.* -> ", text, re.MULTILINE)
    assert len(fused) == len(re.findall(r" dot\(", text)) == 5
