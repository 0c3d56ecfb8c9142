"""Decompositions and equations against torch: values where LAPACK's gauge fixes them, and gradients of invariants.

Signs of singular vectors and eigenvectors are free, so cases with vectors compare what does not depend on them.
"""

import numpy as np
import pytest
import torch

from sbpjax._core.ops.linalg import decompose as dc
from sbpjax._core.ops.linalg import matrix_norm as mn
from sbpjax._core.ops.linalg import solve as so
from tests.ops.checker import F, I, case, run

tl = torch.linalg
LOOSE = 2e-4  # float32 decompositions by two builds of LAPACK, and gradients that divide by gaps


def C(*shape, seed=0):
    """Return complex64 numbers."""
    return (F(*shape, seed=seed) + 1j * F(*shape, seed=seed + 1)).astype(np.complex64)


def D(*shape, seed=0):
    """Return float64 numbers."""
    return F(*shape, dtype=np.float64, seed=seed)


def spd(*shape, seed=0, dtype=np.float64):
    """Return positive definite matrices, not symmetric in the upper triangle's last bits on purpose."""
    x = F(*shape, dtype=np.float64, seed=seed)
    return (x @ np.swapaxes(x, -1, -2) + shape[-1] * np.eye(shape[-1])).astype(dtype)


def both(fn, name=None):
    return fn, getattr(tl, name or fn.__name__)


TOL = 1e-9  # float64: errors grow with the condition number of the random matrices
CASES = [
    case(*both(dc.cholesky), spd(*s), upper=u, tol=TOL) for s in ((3, 3), (2, 4, 4), (0, 0)) for u in (False, True)
]
CASES += [case(dc.cholesky, tl.cholesky, spd(3, 3) + np.triu(D(3, 3), 1), tol=TOL)]
CASES += [case(dc.cholesky, tl.cholesky, spd(3, 3, dtype=np.float32), tol=LOOSE)]
CASES += [
    case(dc.cholesky_solve, torch.cholesky_solve, D(*b), np.linalg.cholesky(spd(*a)), tol=TOL, upper=False)
    for a, b in (((3, 3), (3, 2)), ((2, 3, 3), (2, 3, 1)), ((2, 3, 3), (3, 1)))
]
CASES += [
    case(dc.cholesky_inverse, torch.cholesky_inverse, np.linalg.cholesky(spd(3, 3)), upper=False, tol=TOL, grad=False)
]
CASES += [case(*both(fn), D(*s), tol=TOL) for fn in (dc.det, dc.slogdet) for s in ((3, 3), (2, 4, 4), (1, 1), (0, 0))]
CASES += [
    case(dc.det, tl.det, np.array([[1.0, 2], [2, 4]]), tol=TOL),
    case(dc.logdet, torch.logdet, spd(2, 3, 3), tol=TOL),
]
CASES += [case(dc.logdet, torch.logdet, -np.eye(3), grad=False), case(dc.det, tl.det, C(3, 3), tol=LOOSE)]
CASES += [case(dc.lu, tl.lu, D(*s), tol=TOL) for s in ((3, 3), (4, 2), (2, 4), (2, 3, 3))]
CASES += [case(lambda x: dc.lu_factor(x)[:2], tl.lu_factor, D(*s), tol=TOL) for s in ((3, 3), (2, 4, 3))]
for c in CASES[-2:]:
    c.fn.__name__ = "lu_factor"
CASES += [case(*both(dc.svdvals), D(*s), tol=TOL) for s in ((3, 3), (4, 2), (2, 2, 5))]


def low_rank(x, full_matrices):
    """Return the best approximation of rank 2, which has no gauge."""
    u, s, vh = dc.svd(x, full_matrices=full_matrices)
    return (u[..., :, :2] * s[..., None, :2]) @ vh[..., :2, :]


def torch_low_rank(x, full_matrices):
    u, s, vh = tl.svd(x, full_matrices=full_matrices)
    return (u[..., :, :2] * s[..., None, :2]) @ vh[..., :2, :]


CASES += [
    case(low_rank, torch_low_rank, D(*s), full_matrices=f, tol=1e-8)
    for s in ((3, 3), (5, 3), (3, 5), (2, 4, 3))
    for f in (False, True)
]


def remade_qr(x, mode):
    """Return |R| and the projection on the columns of Q."""
    q, r = dc.qr(x, mode=mode)
    return abs(r), q @ q.mT if mode == "full" else q @ r


def torch_remade_qr(x, mode):
    q, r = tl.qr(x, mode=mode)
    return r.abs(), q @ r


CASES += [
    case(remade_qr, torch_remade_qr, D(*s), mode=m, grad=m == "reduced" or s[-1] >= s[-2], tol=1e-8)
    for s in ((3, 3), (5, 3), (3, 5), (2, 4, 3))
    for m in ("reduced", "complete")
]
CASES += [case(dc.qr, tl.qr, D(4, 3), mode=m, grad=m == "reduced", tol=1e-8) for m in ("reduced", "complete", "r")]


def weighted(x, UPLO):
    """Return a function of the eigenvalues, in the eigenvectors' basis: no gauge."""
    values, vectors = dc.eigh(x, UPLO=UPLO)
    return values, (vectors * values[..., None, :] ** 3) @ vectors.mT


def torch_weighted(x, UPLO):
    values, vectors = tl.eigh(x, UPLO=UPLO)
    return values, (vectors * values[..., None, :] ** 3) @ vectors.mT


CASES += [case(weighted, torch_weighted, D(*s), UPLO=u, tol=1e-8) for s in ((3, 3), (2, 4, 4)) for u in "LU"]
CASES += [case(dc.eigvalsh, tl.eigvalsh, D(3, 3), UPLO="L", tol=TOL)]


def cubed(x):
    """Return the matrix of the eigenvalues' cubes: real, and without a gauge."""
    import jax.numpy as jnp

    values, vectors = dc.eig(x)
    return jnp.real((vectors * values[..., None, :] ** 3) @ jnp.linalg.inv(vectors))


def torch_cubed(x):
    values, vectors = tl.eig(x)
    return torch.real((vectors * values[..., None, :] ** 3) @ tl.inv(vectors))


CASES += [case(cubed, torch_cubed, D(*s), tol=1e-8) for s in ((3, 3), (2, 4, 4))]
CASES += [case(*both(dc.matrix_exp), D(*s), tol=1e-8) for s in ((3, 3), (2, 2, 2))]

# ------------------------------------------------------------------------------------------------------- equations


def solve(a, b, left=True):
    return so.solve_ex(a, b, left=left)[0]


def inv(a):
    return so.inv_ex(a)[0]


PAIRS = [
    ((3, 3), (3,)),
    ((3, 3), (3, 2)),
    ((2, 3, 3), (2, 3)),
    ((2, 3, 3), (3, 1)),
    ((2, 3, 3), (5, 1, 3, 2)),
    ((0, 0), (0, 2)),
]
CASES += [case(solve, tl.solve, D(*a), D(*b), tol=1e-8) for a, b in PAIRS]
CASES += [
    case(solve, tl.solve, D(2, 3, 3), D(2, 4, 3), left=False, tol=1e-8),
    case(solve, tl.solve, C(3, 3), C(3, 2, seed=5), tol=LOOSE),
]
CASES += [case(inv, tl.inv, D(*s), tol=1e-8) for s in ((3, 3), (2, 4, 4), (0, 0))] + [
    case(inv, tl.inv, C(3, 3), tol=LOOSE)
]
CASES += [
    case(*both(so.solve_triangular), D(*a), D(*b), upper=u, left=left, unitriangular=o, tol=1e-8)
    for a, b, left in (((3, 3), (3, 2), True), ((2, 3, 3), (4, 3), False))
    for u in (False, True)
    for o in (False, True)
]
CASES += [
    case(
        so.lu_solve,
        tl.lu_solve,
        *(z.numpy() for z in tl.lu_factor(torch.from_numpy(D(3, 3)))),
        D(*b),
        tol=1e-8,
        left=left,
        adjoint=t,
    )
    for b, left in (((3, 2), True), ((2, 3), False))
    for t in (False, True)
]
CASES += [case(so.pinv, lambda a: tl.pinv(a), D(*s), tol=1e-8) for s in ((3, 3), (4, 2), (2, 2, 4), (0, 3))]
CASES += [case(so.pinv, lambda a, hermitian: tl.pinv(a, hermitian=hermitian), spd(3, 3), hermitian=True, tol=1e-8)]
CASES += [
    case(so.matrix_rank, lambda a, t, r: tl.matrix_rank(a, atol=t, rtol=r), x, t, r)
    for x in (D(3, 3), np.ones((2, 3, 4)), np.diag([1.0, 1e-3, 0]))
    for t, r in ((None, None), (0.01, None), (None, 0.01))
]
CASES += [
    case(lambda a, b: so.lstsq(a, b)[0], lambda a, b: tl.lstsq(a, b).solution, D(*a), D(*b), tol=1e-8)
    for a, b in (((4, 2), (4, 3)), ((2, 4), (2, 3)), ((2, 4, 2), (2, 4, 1)))
]
for c in CASES[-3:]:
    c.fn.__name__ = "lstsq"
CASES += [
    case(lambda a, b: so.tensorsolve(a, b)[0], tl.tensorsolve, D(2, 3, 6), D(2, 3), tol=1e-8),
    case(lambda a, ind: so.tensorinv(a, ind=ind)[0], tl.tensorinv, D(6, 2, 3), ind=1, tol=1e-8),
]
for c, name in zip(CASES[-2:], ("tensorsolve", "tensorinv")):
    c.fn.__name__ = name
CASES += [case(*both(so.matrix_power), D(2, 3, 3), n=n, tol=1e-7) for n in (0, 1, 2, 5)]
CASES += [
    case(so.multi_dot, lambda *x: tl.multi_dot(x), *(D(*s) for s in shapes), tol=TOL)
    for shapes in (((2, 3), (3, 4)), ((10, 2), (2, 30), (30, 4), (4, 5)), ((3,), (3, 4), (4,)), ((3,), (3, 2), (2, 2)))
]
CASES += [case(so.vander, tl.vander, x, N=n) for x in (D(3), D(2, 4), I(3)) for n in (None, 2, 5)]
CASES += [case(so.vector_powers, torch.vander, D(3), N=n, grad=False) for n in (None, 0, 1, 5)]
CASES += [case(so.vector_powers, torch.vander, x, increasing=True) for x in (I(3), np.array([True, False]))]

# ----------------------------------------------------------------------------------------------------------- norms

CASES += [
    case(*both(mn.matrix_norm), D(3, 4, 2), ord=o, dim=d, keepdim=k, tol=1e-8)
    for o in mn.ORDERS
    for d, k in (((-2, -1), False), ((0, 2), True))
]
CASES += [
    case(mn.cond, tl.cond, D(2, 3, 3), p=p, tol=1e-7, grad=p in (None, 2, -2))
    for p in (None, "fro", "nuc", np.inf, -np.inf, 1, -1, 2, -2)
]

test_against_torch = run(CASES, per_op=2)


@pytest.mark.parametrize(
    "fn, inputs, attrs, rule",
    [
        (dc.det, (F(2, 3),), {}, "square"),
        (dc.det, (F(3),), {}, "at least 2"),
        (dc.svd, (I(3, 3),), {}, "floating point"),
        (dc.qr, (F(3, 3),), {"mode": "none"}, "unrecognized mode"),
        (so.solve_ex, (F(3, 3), F(2, 2)), {}, "Incompatible shapes"),
        (so.solve_ex, (F(3, 3), F(3, dtype=np.float64)), {}, "same dtype"),
        (so.multi_dot, (F(3, 3),), {}, "at least 2"),
        (so.vander, (F(1),), {}, "N must be greater than 1"),
        (so.vector_powers, (F(2, 3),), {}, "one-dimensional"),
        (so.vector_powers, (F(3),), {"N": -1}, "non-negative"),
        (dc.reflections, (I(3, 2),), {}, "floating point"),
        (dc.reflect, (F(3, 2), D(2), F(3, 2)), {}, "same dtype"),
        (dc.reflect, (F(3, 2), F(2), D(3, 2)), {}, "same dtype"),
        (dc.reflect, (F(3, 2), F(1), F(3, 2)), {}, r"tau.shape\[-1\] must be equal to 2"),
        (dc.reflect, (F(3, 2), F(2), F(4, 3, 2)), {}, "same batch dims"),
        (mn.matrix_norm, (F(3, 3),), {"ord": 3}, "ord is one of"),
    ],
)
def test_misuse(fn, inputs, attrs, rule):
    with pytest.raises(RuntimeError, match=rule):
        fn(*inputs, **attrs)


def test_failures_are_told_where():
    indefinite = np.stack([np.eye(2), -np.eye(2)])
    assert dc.cholesky_ex(indefinite)[1].tolist() == [0, 1]
    assert so.inv_ex(np.stack([np.eye(2), np.diag([1.0, 0])]))[1].tolist() == [0, 2]
