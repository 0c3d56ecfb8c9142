"""`lobpcg` against all eigenvalues of the problem."""

import numpy as np
import pytest
import scipy.linalg

import sbpjax


def _problem(n: int, generalized: bool):
    rng = np.random.default_rng(n)
    a, b = rng.normal(size=(2, n, n))
    return a + a.T, (b @ b.T + n * np.eye(n) if generalized else None)


@pytest.mark.parametrize(("largest", "generalized"), [(True, False), (False, True)])
def test_a_few_eigenvalues(largest, generalized):
    a, b = _problem(12, generalized)
    every = scipy.linalg.eigh(a, b)[0]
    want = every[::-1][:2] if largest else every[:2]
    for grad in (False, True):  # by rounds, and through `linalg.eigh`
        given = sbpjax.tensor(a, requires_grad=grad)
        values, vectors = sbpjax.lobpcg(
            given, 2, None if b is None else sbpjax.tensor(b), largest=largest, niter=-1, tol=1e-9
        )
        np.testing.assert_allclose(values.detach().numpy(), want, 1e-10)
        v = vectors.detach().numpy()
        np.testing.assert_allclose(a @ v, (v if b is None else b @ v) * want, atol=1e-6)
    values.sum().backward()
    np.testing.assert_allclose(given.grad.numpy(), v @ v.T, atol=1e-9)


def test_where_it_begins_and_when_it_stops():
    a, _ = _problem(9, False)
    every, vectors = np.linalg.eigh(a)
    start = sbpjax.tensor(vectors[:, -2:])
    values, _ = sbpjax.lobpcg(sbpjax.tensor(a), X=start, niter=0)
    np.testing.assert_allclose(values.numpy(), every[::-1][:2], 1e-10)


def test_wrong_arguments():
    with pytest.raises(ValueError, match="3 n = 6"):
        sbpjax.lobpcg(sbpjax.eye(5), k=2)
    with pytest.raises(ValueError, match="method"):
        sbpjax.lobpcg(sbpjax.eye(5), method="fast")
    with pytest.raises(RuntimeError, match="tracker"):
        sbpjax.lobpcg(sbpjax.eye(5), tracker=print)
