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
