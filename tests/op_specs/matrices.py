"""Decompositions, inverses, solutions and norms of matrices."""

from __future__ import annotations

import numpy as np

from tests.op_specs.engine import op
from tests.support.generate import Input, call

_TOL = {"float32": 1e-4, "float64": 1e-9, "complex64": 1e-4, "complex128": 1e-9}  # times a condition number of some 10
_REASON = {"tol": _TOL, "reason": "an error grows with the condition number"}
_SHAPES = ((3, 3), (2, 3, 3), (1, 1), (2, 2))


def _regular(g, *shapes, kinds: str = "fc") -> Input:
    """Return matrices with a condition number of about 10."""
    array = g.array(g.pick(*(shapes or _SHAPES)), g.dtype(kinds))
    return Input((array + 3 * np.eye(*array.shape[-2:])).astype(array.dtype))


def _definite(g, kinds: str = "fc", *shapes) -> Input:
    """Return Hermitian matrices with eigenvalues of 1 and more, no two of them close."""
    array = g.array(g.pick(*(shapes or _SHAPES)), g.dtype(kinds))
    n = array.shape[-1]
    q = np.linalg.qr(array.astype(np.complex128 if array.dtype.kind == "c" else np.float64))[0]
    found = (q * (1.0 + np.arange(n))) @ np.conj(np.swapaxes(q, -1, -2))
    return Input(((found + np.conj(np.swapaxes(found, -1, -2))) / 2).astype(array.dtype))


def _distinct(g, *shapes, kinds: str = "f") -> Input:
    """Return matrices whose singular values are far apart."""
    array = g.array(g.pick(*shapes), g.dtype(kinds))
    u, s, v = np.linalg.svd(array.astype(np.complex128 if array.dtype.kind == "c" else np.float64), full_matrices=False)
    return Input(((u * (1.0 + np.arange(s.shape[-1]))) @ v).astype(array.dtype))


def _square(names: str, make=_regular, kinds: str = "fc", **options) -> None:
    @op(names, **{**_REASON, **options})
    def _(g):
        return call(make(g, kinds=kinds))


_square("linalg.inv inverse linalg.det det linalg.matrix_exp matrix_exp", kinds="f")
_square("linalg.slogdet slogdet", kinds="f")
_square("logdet", _definite, "f")
_square("linalg.cholesky cholesky", _definite, "f")
_square("linalg.pinv pinverse", kinds="f", double=False)
_square("linalg.matrix_rank", kinds="f", grad=False)
_square("linalg.cond", kinds="f", double=False)
_square("linalg.inv_ex", kinds="f", invariant=lambda inverse, info: (inverse, info), double=False)
_square("linalg.cholesky_ex", _definite, "f", double=False)
_square("linalg.eigvalsh", _definite, "f", double=False)
_square("cholesky_inverse", lambda g, kinds: Input(np.tril(_regular(g, (3, 3), kinds=kinds).base)), "f", double=False)


@op("linalg.matrix_power matrix_power", **_REASON)
def _(g):
    return call(_regular(g, kinds="f"), g.pick(2, 3, 0, 1, -1, -2))


@op("linalg.svdvals", double=False, **_REASON)
def _(g):
    return call(_distinct(g, (3, 3), (2, 3), (3, 2), (2, 3, 2)))


def _rebuilt(u, s, vh):
    return (u * s.unsqueeze(-2)) @ vh, s


@op("linalg.svd", invariant=_rebuilt, double=False, **_REASON)
def _(g):
    return call(_distinct(g, (3, 3), (2, 3), (3, 2), (2, 3, 2)), full_matrices=False)


@op("svd", invariant=lambda u, s, v: ((u * s.unsqueeze(-2)) @ v.mT, s), double=False, **_REASON)
def _(g):
    return call(_distinct(g, (3, 3), (2, 3), (3, 2)))


@op("linalg.qr qr", invariant=lambda q, r: (q @ r, r.abs()), double=False, **_REASON)
def _(g):
    return call(_regular(g, (3, 3), (2, 3, 3), kinds="f"))


@op("linalg.eigh", invariant=lambda w, v: (w, (v * w.unsqueeze(-2).exp()) @ v.mH), double=False, **_REASON)
def _(g):
    return call(_definite(g, "f"), **({"UPLO": "U"} if g.flag() else {}))


@op("linalg.eig", invariant=lambda w, v: (v * w.unsqueeze(-2)) @ v.inverse(), grad=False, **_REASON)
def _(g):
    return call(_definite(g, "f"))


@op("linalg.eigvals", invariant=lambda w: w.real.sort()[0], grad=False, **_REASON)
def _(g):
    return call(_definite(g, "f"))


@op("linalg.solve", **_REASON)
def _(g):
    a = _regular(g, kinds="f")
    return call(a, g.tensor((*a.shape[:-2], a.shape[-1], g.pick(2, 1)), a.dtype, views=False))


@op("linalg.solve_ex", double=False, **_REASON)
def _(g):
    a = _regular(g, kinds="f")
    return call(a, g.tensor((*a.shape[:-1], 2), a.dtype, views=False))


@op("linalg.solve_triangular", **_REASON)
def _(g):
    a = _regular(g, (3, 3), (2, 3, 3), kinds="f")
    upper = g.flag()
    return call(a, g.tensor((*a.shape[:-1], 2), a.dtype, views=False), upper=upper, **g.maybe(unitriangular=True))


@op("triangular_solve", double=False, **_REASON)
def _(g):
    a = _regular(g, (3, 3), kinds="f")
    return call(g.tensor((3, 2), a.dtype, views=False), a, **g.maybe(upper=False, transpose=True, unitriangular=True))


@op("cholesky_solve", double=False, **_REASON)
def _(g):
    a = Input(np.tril(_regular(g, (3, 3), kinds="f").base))
    return call(g.tensor((3, 2), a.dtype, views=False), a)


@op("linalg.lu", double=False, **_REASON)
def _(g):
    return call(_regular(g, (3, 3), (2, 3, 3), kinds="f"))


@op("linalg.lu_factor linalg.lu_factor_ex lu", double=False, **_REASON)
def _(g):
    return call(_regular(g, (3, 3), (2, 3, 3), kinds="f"))


_PIVOTS = np.array([1, 3, 3], np.int32)


@op("linalg.lu_solve", double=False, **_REASON)
def _(g):
    a = _regular(g, (3, 3), kinds="f")
    return call(a, Input(_PIVOTS, grad=False), g.tensor((3, 2), a.dtype, views=False))


@op("lu_solve", double=False, **_REASON)
def _(g):
    a = _regular(g, (3, 3), kinds="f")
    return call(g.tensor((3, 2), a.dtype, views=False), a, Input(_PIVOTS, grad=False))


@op("lu_unpack", double=False)
def _(g):
    return call(_regular(g, (3, 3), kinds="f"), Input(_PIVOTS, grad=False))


@op("linalg.ldl_factor linalg.ldl_factor_ex", grad=False, **_REASON)
def _(g):
    return call(_regular(g), **g.maybe(hermitian=True))


@op("linalg.ldl_solve", grad=False, **_REASON)
def _(g):
    a = _regular(g, (3, 3), (2, 3, 3))
    pivots = np.broadcast_to(np.array(g.pick([1, 2, 3], [-2, -2, 3], [1, -3, -3], [2, 2, 3]), np.int32), a.shape[:-1])
    return call(a, Input(pivots.copy(), grad=False), g.tensor((*a.shape[:-1], 2), a.dtype, views=False))


@op("linalg.lstsq", invariant=lambda solution, *rest: solution, double=False, **_REASON)
def _(g):
    a = _distinct(g, (3, 2), (3, 3))
    return call(a, g.tensor((3, 2), a.dtype, views=False))


@op("linalg.tensorinv", **_REASON)
def _(g):
    a = _regular(g, (4, 4), kinds="f")
    return call(Input(a.base.reshape(2, 2, 4)), ind=2)


@op("linalg.tensorsolve", **_REASON)
def _(g):
    a = _regular(g, (4, 4), kinds="f")
    return call(Input(a.base.reshape(2, 2, 4)), g.tensor((2, 2), a.dtype, views=False))


@op("linalg.multi_dot", **_REASON)
def _(g):
    dtype = g.dtype()
    return call([g.tensor(s, dtype) for s in g.pick(((2, 3), (3, 4)), ((2, 3), (3, 4), (4, 2)), ((3,), (3, 4), (4,)))])


@op("chain_matmul", **_REASON)
def _(g):
    dtype = g.dtype()
    return call(*[g.tensor(s, dtype) for s in ((2, 3), (3, 4), (4, 2))])


@op("linalg.cross linalg.vecdot")
def _(g):
    x = g.tensor(g.pick((3,), (2, 3), (3, 3)), "f")
    return call(x, g.tensor(x.shape, x.dtype), dim=g.pick(-1, 0) if x.shape != (2, 3) else -1)


@op("linalg.diagonal", aliases=True)
def _(g):
    return call(g.tensor(g.pick((3, 3), (2, 4), (2, 3, 4)), "fi"), **g.maybe(offset=1))


@op("linalg.matrix_norm", double=False, **_REASON)
def _(g):
    return call(
        _regular(g, kinds="f"), g.pick("fro", "nuc", 1, -1, 2, -2, float("inf"), -float("inf")), **g.maybe(keepdim=True)
    )


@op("linalg.vander")
def _(g):
    return call(g.tensor((3,), "f"))


@op("vander", grad=False, reason="PyTorch's backward of it raises: it writes into what it saved")
def _(g):
    return call(g.tensor((3,), "f"), **g.maybe(N=2, increasing=True))


@op("linalg.householder_product orgqr", double=False, **_REASON)
def _(g):
    dtype = g.dtype()
    return call(*[g.tensor(shape, dtype, views=False, low=0.1, high=1.0) for shape in ((3, 2), (2,))])


@op("geqrf", grad=False, double=False, reason="PyTorch has no derivative of it")
def _(g):
    return call(g.tensor((3, 2), g.dtype(), views=False))


@op("ormqr", double=False, **_REASON)
def _(g):
    dtype = g.dtype()
    packed, tau, other = (g.tensor(s, dtype, views=False, low=0.1, high=1.0) for s in ((3, 2), (2,), (3, 2)))
    return call(packed, tau, other, **g.maybe(transpose=True))
