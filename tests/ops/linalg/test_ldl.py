"""The factorisation of symmetric indefinite matrices against PyTorch's, that is LAPACK's."""

import jax
import numpy as np
import pytest
import torch

import sbpjax
from sbpjax._core.ops.linalg import ldl


def _symmetric(n: int, dtype: str, small_diagonal: bool):
    rng = np.random.default_rng(n)
    a = rng.normal(size=(3, n, n)) + (1j * rng.normal(size=(3, n, n)) if dtype == "complex128" else 0)
    return a * (1 - np.eye(n) * 0.99) if small_diagonal else a  # a small diagonal asks for blocks of two


@pytest.mark.parametrize("hermitian", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("n", [1, 5])
def test_factors_and_solutions(n, dtype, hermitian):
    factor = jax.jit(ldl.ldl_factor_ex, static_argnames="hermitian")
    solve = jax.jit(ldl.ldl_solve, static_argnames="hermitian")
    b = np.random.default_rng(0).normal(size=(3, n, 2)).astype(dtype)
    for small in (False, True):
        a = _symmetric(n, dtype, small)
        want = torch.linalg.ldl_factor_ex(torch.tensor(a), hermitian=hermitian)
        packed, pivots, info = factor(a, hermitian=hermitian)
        np.testing.assert_allclose(packed, want.LD.numpy(), 1e-10, 1e-10)
        np.testing.assert_array_equal(pivots, want.pivots.numpy())
        assert not info.any()
        assert not small or n == 1 or (np.asarray(pivots) < 0).any()
        x = torch.linalg.ldl_solve(want.LD, want.pivots, torch.tensor(b), hermitian=hermitian)
        np.testing.assert_allclose(solve(packed, pivots, b, hermitian=hermitian), x.numpy(), 1e-8, 1e-8)


def test_a_zero_column_is_named():
    a = np.diag([1.0, 0.0, 2.0])
    found = sbpjax.linalg.ldl_factor_ex(sbpjax.tensor(a))
    assert found.info.item() == torch.linalg.ldl_factor_ex(torch.tensor(a)).info.item() == 2
    with pytest.raises(sbpjax.linalg.LinAlgError, match="zero on its diagonal"):
        sbpjax.linalg.ldl_factor(sbpjax.tensor(a))


def test_the_gradient_of_a_solution():
    a = _symmetric(4, "float64", True)[0]
    packed, pivots = sbpjax.linalg.ldl_factor(sbpjax.tensor(a))
    b = sbpjax.ones(4, 1, dtype=sbpjax.float64, requires_grad=True)
    sbpjax.linalg.ldl_solve(packed, pivots, b).sum().backward()
    whole = np.tril(a) + np.tril(a, -1).T
    np.testing.assert_allclose(b.grad.numpy()[:, 0], np.linalg.solve(whole, np.ones(4)), 1e-10)


def test_wrong_arguments():
    eye, pivots = sbpjax.eye(3), sbpjax.tensor([1, 2, 3], dtype=sbpjax.int32)
    with pytest.raises(RuntimeError, match="square"):
        sbpjax.linalg.ldl_factor(sbpjax.ones(2, 3))
    with pytest.raises(RuntimeError, match="results of linalg.ldl_factor"):
        sbpjax.linalg.ldl_solve(eye, pivots, sbpjax.ones(2, 1))
    with pytest.raises(RuntimeError, match="pivot"):
        sbpjax.linalg.lu_factor(eye, pivot=False)
