"""The public form of linear algebra: named results, errors, aliases, complex gradients, split batches."""

import numpy as np
import pytest
import torch

import sbpjax
from sbpjax.errors import LinAlgError

X = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 2.0]])


def test_results_have_names():
    x, t = sbpjax.tensor(X), torch.tensor(X)
    for name in ("svd", "qr", "eigh", "eig", "slogdet", "lu", "lu_factor", "cholesky_ex", "inv_ex"):
        ours, theirs = getattr(sbpjax.linalg, name)(x), getattr(torch.linalg, name)(t)
        for field in ours._fields:
            got, want = getattr(ours, field), getattr(theirs, field)
            assert tuple(got.shape) == tuple(want.shape) and str(got.dtype)[7:] == str(want.dtype)[6:], (name, field)
    np.testing.assert_allclose((x.svd().V @ x.svd().V.mT).numpy(), np.eye(3), atol=1e-12)


def test_top_level_names_and_methods():
    x, t = sbpjax.tensor(X), torch.tensor(X)
    for name in ("inverse", "det", "logdet", "pinverse", "matrix_exp"):
        want = getattr(torch, name)(t).numpy()
        np.testing.assert_allclose(getattr(sbpjax, name)(x).numpy(), want, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(getattr(x, name)().numpy(), want, rtol=1e-9, atol=1e-9)
    b = np.ones((3, 1))
    for upper in (True, False):
        for transpose in (True, False):
            got = sbpjax.triangular_solve(sbpjax.tensor(b), x, upper, transpose).solution
            half = np.triu(X) if upper else np.tril(X)
            np.testing.assert_allclose(got.numpy(), np.linalg.solve(half.T if transpose else half, b), rtol=1e-9)


@pytest.mark.parametrize("name", ["inv", "cholesky"])
def test_what_does_not_exist_is_an_error(name):
    bad = np.stack([np.eye(2), -np.ones((2, 2))])
    with pytest.raises(LinAlgError, match=r"Batch element \(1,\)"):
        getattr(sbpjax.linalg, name)(sbpjax.tensor(bad))
    with pytest.raises(torch.linalg.LinAlgError):
        getattr(torch.linalg, name)(torch.tensor(bad))
    with pytest.raises(LinAlgError, match="singular"):
        sbpjax.linalg.solve(sbpjax.zeros(2, 2), sbpjax.ones(2))


SINGULAR_VALUES = {
    "svd": lambda m, a: m.linalg.svd(a),
    "svdvals": lambda m, a: m.linalg.svdvals(a),
    "older svd": lambda m, a: m.svd(a),
    "pinv": lambda m, a: m.linalg.pinv(a),
    "matrix_rank": lambda m, a: m.linalg.matrix_rank(a),
    "cond": lambda m, a: m.linalg.cond(a),
    "matrix_norm": lambda m, a: m.linalg.matrix_norm(a, 2),
    "norm": lambda m, a: m.linalg.norm(a, "nuc"),
}


@pytest.mark.parametrize("name", SINGULAR_VALUES)
def test_a_matrix_with_nan_has_no_singular_values(name):
    call, bad = SINGULAR_VALUES[name], np.stack([np.eye(3), np.full((3, 3), np.nan)])
    with pytest.raises(torch.linalg.LinAlgError, match="non-finite"):
        call(torch, torch.tensor(bad[1]))
    with pytest.raises(LinAlgError, match="non-finite"):
        call(sbpjax, sbpjax.tensor(bad[1]))
    if name not in ("norm", "older svd"):
        with pytest.raises(LinAlgError, match=r"Batch element \(1,\)"):
            call(sbpjax, sbpjax.tensor(bad))
        with pytest.raises(LinAlgError, match="rule: The algorithm"):
            call(sbpjax, sbpjax.tensor(bad, placement=sbpjax.placement("cpu", [0, 1]), sbp=sbpjax.sbp.split(0)))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_matrix_that_is_not_finite_has_no_eigenvalues(value):
    bad = np.diag([value, 1.0])
    with pytest.raises(RuntimeError, match="infs or NaNs"):
        torch.linalg.eig(torch.tensor(bad))
    for name in ("eig", "eigvals"):
        with pytest.raises(LinAlgError, match="infs or NaNs"):
            getattr(sbpjax.linalg, name)(sbpjax.tensor(bad))
    # PyTorch gives NaN here, too.
    assert sbpjax.linalg.eigvalsh(sbpjax.full((2, 2), value)).isnan().all()
    assert sbpjax.linalg.matrix_norm(sbpjax.full((2, 2), value)).isfinite().logical_not()


def test_singular_values_of_matrices_with_inf_are_nan():
    """LAPACK's gesdd does not come to an end with this one."""
    bad = np.eye(3, dtype=np.float32)
    bad[0, 1] = bad[1, 0] = np.inf
    u, s, vh = sbpjax.linalg.svd(sbpjax.tensor(np.stack([bad, np.eye(3, dtype=np.float32)])))
    assert u[0].isnan().all() and s[0].isnan().all() and vh[0].isnan().all()
    assert s[1].tolist() == [1, 1, 1]


def test_norms_choose_between_vectors_and_matrices():
    x, t = sbpjax.tensor(X), torch.tensor(X)
    for options in ({}, {"ord": 2}, {"ord": 2, "dim": 0}, {"ord": "nuc"}, {"ord": 1, "dim": (0, 1)}, {"dim": (1,)}):
        np.testing.assert_allclose(
            sbpjax.linalg.norm(x, **options).numpy(), torch.linalg.norm(t, **options).numpy(), rtol=1e-9
        )


def test_gradients_of_complex_values_are_those_of_torch():
    z = np.array([1 + 2j, -0.5 + 0.3j], np.complex64)
    ours, theirs = sbpjax.tensor(z, requires_grad=True), torch.tensor(z, requires_grad=True)
    sbpjax.real(ours * ours.exp()).sum().backward()
    torch.real(theirs * theirs.exp()).sum().backward()
    np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy(), rtol=1e-5)


def test_a_split_batch_stays_split():
    placement = sbpjax.placement("cpu", [0, 1])
    x = sbpjax.tensor(np.stack([X] * 4)).to_global(placement, sbpjax.sbp.split(0))
    for found in (sbpjax.linalg.inv(x), sbpjax.linalg.qr(x).R, sbpjax.linalg.eigvalsh(x), sbpjax.linalg.solve(x, x)):
        assert found.sbp == (sbpjax.sbp.split(0),)
