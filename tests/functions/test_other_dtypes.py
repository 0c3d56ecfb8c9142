"""Results of other dtypes than float32 that once differed from PyTorch's in value or dtype."""

import numpy as np
import pytest
import torch

import sbpjax as flow


@pytest.mark.parametrize("shape", [(), (1,), (3,)], ids=str)
def test_logsumexp_of_complex_numbers_has_its_angle_in_one_turn(shape):
    x = (np.full(shape, 1000.0) + 1j * np.linspace(1400, 1402, max(int(np.prod(shape)), 1)).reshape(shape)).astype("F")
    ours, theirs = (t.logsumexp(t.tensor(x), 0).numpy() for t in (flow, torch))
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "float64", "complex64"])
def test_cov_has_the_dtype_of_data_and_weights(dtype):
    x = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
    ours, theirs = (
        t.cov(t.tensor(x).to(getattr(t, dtype)), aweights=t.tensor([0.1, 0.2, 0.3, 0.4])) for t in (flow, torch)
    )
    assert str(ours.dtype).split(".")[1] == str(theirs.dtype).split(".")[1]
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-2 if dtype == "bfloat16" else 1e-4, atol=1e-5)


@pytest.mark.parametrize("driver", ["gels", "gelsd"])
@pytest.mark.parametrize("shape", [(4, 2), (2, 4)], ids=str)
def test_lstsq_of_complex_matrices_has_real_residuals(shape, driver):
    rng = np.random.default_rng(0)
    a, b = ((rng.standard_normal(s) + 1j * rng.standard_normal(s)).astype("F") for s in (shape, (shape[0], 3)))
    ours, theirs = (t.linalg.lstsq(t.tensor(a), t.tensor(b), driver=driver) for t in (flow, torch))
    for mine, other in zip(ours, theirs, strict=True):
        assert str(mine.dtype).split(".")[1] == str(other.dtype).split(".")[1]
        np.testing.assert_allclose(mine.numpy(), other.numpy(), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_rpow_of_two_tensors_broadcasts_and_has_both_gradients(dtype):
    x, y = np.random.default_rng(0).uniform(0.5, 2, (2, 3, 1, 4)).astype(np.float32)[:, :2, 0]
    runs = []
    for t in (flow, torch):
        a, b = (t.tensor(v).to(getattr(t, dtype)).requires_grad_() for v in (x, y[0]))
        out = a.__rpow__(b)
        out.sum().backward()
        assert str(out.dtype).endswith(dtype)
        runs.append([v.float().detach().numpy() for v in (out, a.grad, b.grad)])
    for mine, other in zip(*runs):
        np.testing.assert_allclose(mine, other, rtol=3e-2 if dtype == "bfloat16" else 1e-5)


def test_array_to_the_power_of_a_tensor():
    base = np.array([1.0, 2.0, 3.0], np.float32)
    out = flow.tensor([2.0, 0.5, 1.0]).__rpow__(base)
    np.testing.assert_allclose(out.numpy(), base ** np.array([2, 0.5, 1], np.float32), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name, powers", [("log2", 2.0), ("log10", 10.0)])
def test_logarithm_is_exact_at_powers_of_its_base(name, powers, dtype):
    whole = np.arange(-30, 31)
    out = getattr(flow, name)(flow.tensor((powers**whole).astype(dtype))).numpy()
    np.testing.assert_array_equal(out, whole)


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "float64"])
def test_power_of_two_is_exact_at_whole_numbers(dtype):
    whole = np.arange(-120, 120)
    y, one = (flow.tensor(v.astype(np.float64)).to(getattr(flow, dtype)) for v in (whole, np.ones(240)))
    np.testing.assert_array_equal(flow.exp2(y).double().numpy(), 2.0**whole)
    np.testing.assert_array_equal(flow.ldexp(one, y).double().numpy(), 2.0**whole)


BFLOAT16 = {
    "exp2": [np.linspace(-120, 120, 99)],
    "log2": [np.geomspace(1e-30, 1e30, 99)],
    "log10": [np.geomspace(1e-30, 1e30, 99)],
    "logaddexp": [np.linspace(-6, 0, 99), np.full(99, -0.0104)],
    "logaddexp2": [np.linspace(-6, 0, 99), np.full(99, -0.0104)],
    "round": [np.linspace(0, 0.02, 99)],
}


@pytest.mark.parametrize("name", BFLOAT16)
def test_bfloat16_result_is_within_one_rounding_of_float64(name):
    options = {"decimals": 3} if name == "round" else {}
    inputs = [torch.tensor(x).bfloat16() for x in BFLOAT16[name]]
    exact = getattr(torch, name)(*[x.double() for x in inputs], **options).numpy()
    ours = getattr(flow, name)(*[flow.tensor(x.float().numpy()).bfloat16() for x in inputs], **options)
    np.testing.assert_allclose(ours.double().numpy(), exact, rtol=2.0**-8, atol=1e-6)


@pytest.mark.parametrize("split", [0, 1])
def test_logcumsumexp_of_complex_numbers_adds_in_order(split):
    rng = np.random.default_rng(0)
    x = (rng.uniform(-9, 9, (6, 4)) + 1j * rng.uniform(-9, 9, (6, 4))).astype("F")
    theirs = torch.tensor(x, requires_grad=True)
    ours = flow.tensor(x).to_global(flow.placement("cpu", [0, 1]), flow.sbp.split(split)).requires_grad_()
    outs = [t.logcumsumexp(0) for t in (ours, theirs)]
    for out in outs:
        out.abs().sum().backward()
    for mine, other in zip([outs[0], ours.grad], [outs[1], theirs.grad], strict=True):
        np.testing.assert_allclose(mine.detach().numpy(), other.detach().resolve_conj().numpy(), rtol=1e-4, atol=1e-4)


NEAR_ZERO = [complex(a, b) * 3e-4 for a in (-1, 0.9, 0.0) for b in (-1.2, 0.7, 0.0)]
ON_CUTS = [complex(a, b) for a in (0.0, -0.0) for b in (7.9, -7.9, 0.5, -0.5)]


@pytest.mark.parametrize("name, points", [("sinh", NEAR_ZERO), ("asinh", ON_CUTS)])
def test_hyperbolic_sines_of_complex_numbers(name, points):
    runs = []
    for m in (flow, torch):
        x = m.tensor(np.array(points, np.complex64), requires_grad=True)
        out = getattr(m, name)(x)
        out.abs().sum().backward()
        runs.append([v.detach().resolve_conj().numpy() for v in (out, x.grad)])
    for mine, other in zip(*runs, strict=True):
        np.testing.assert_allclose(mine, other, rtol=2e-6, atol=1e-7)


def test_bfloat16_pooling_of_many_numbers_adds_in_float32():
    x = torch.tensor(np.random.default_rng(0).normal(1, 0.5, (8, 4096))).bfloat16()
    ours = flow.nn.functional.lp_pool1d(flow.tensor(x.float().numpy()).bfloat16(), 2, 1024)
    assert ours.dtype is flow.bfloat16
    theirs = torch.nn.functional.lp_pool1d(x, 2, 1024)
    np.testing.assert_allclose(ours.float().numpy(), theirs.float().numpy(), rtol=2e-2)
