"""Matrix decompositions: LU, Cholesky, QR, eigenvalues, singular values; with leading batch dims.

All are LAPACK's, in LAPACK's gauge, as in torch. This file adds torch's reading of the input and torch's
gradients. Worked case: `cholesky` of ``[[4, 9], [2, 3]]`` reads the lower triangle alone, so it decomposes
``[[4, 2], [2, 3]]``; its gradient is that of a symmetric matrix, halved between both triangles.

A decomposition that fails does not raise here, since a compiled program cannot: `cholesky` and `lu` report it in their
last output, an int32 of the batch's shape that is 0 for success. Public functions read it where they can.
"""

from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..dims import fail, same_dtype
from ..promote import cast, compute_dtype, is_float

_EXACT = (np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.complex64), np.dtype(np.complex128))


def check_matrices(op: str, *arrays, square: bool = False) -> None:
    """Raise unless all arrays are stacks of matrices of one dtype that LAPACK has."""
    for x in arrays:
        if x.ndim < 2:
            fail("shape", f"{op}(A)", f"A {x.shape}", "A must have at least 2 dimensions", "unsqueeze it first")
        if not is_float(x.dtype) or x.dtype not in _EXACT:
            rule = "Expected a floating point or complex tensor as input, of 32 or 64 bits each part"
            fail("type", f"{op}(A)", f"a tensor of {x.dtype}", rule, "A.float()")
        if square and x.shape[-1] != x.shape[-2]:
            name = op if "." in op else f"linalg.{op}"
            sizes = f"{x.shape[-2]} by {x.shape[-1]}"
            rule = f"{name}: A must be batches of square matrices, but they are {sizes} matrices"
            fail("shape", f"{op}(A)", f"A {x.shape}", rule, "slice it to a square")
    if len({x.dtype for x in arrays}) > 1:
        rule = "all inputs have the same dtype"
        fail("type", f"{op}(A, B)", f"dtypes {', '.join(str(x.dtype) for x in arrays)}", rule, "B.to(A.dtype)")


def adjoint(x):
    """Return the conjugate transpose of matrices."""
    x = jnp.swapaxes(x, -1, -2)
    return lax.conj(x) if jnp.iscomplexobj(x) else x


def dot(x, y):
    """Return the products of two stacks of matrices with equal batch dims."""
    batch = tuple(range(x.ndim - 2))
    return lax.dot_general(x, y, (((x.ndim - 1,), (y.ndim - 2,)), (batch, batch)), precision=lax.Precision.HIGHEST)


def identity(x, n: int):
    """Return the identity of size n, in the batch shape and dtype of x."""
    return jnp.broadcast_to(jnp.eye(n, dtype=x.dtype), (*x.shape[:-2], n, n))


# ------------------------------------------------------------------------------------------------------ Cholesky


def cholesky_ex(x, /, upper: bool = False):
    """Return the Cholesky factor of Hermitian matrices and where they are not positive definite.

    Args:
        x: ``(..., N, N)``; the lower triangle is read, the upper one with ``upper``.
        upper: return the upper factor U of ``U^H U``.

    Returns:
        The factor (NaN where it does not exist), and int32 ``(...)``: 0, or 1 where it does not.
    """
    check_matrices("linalg.cholesky", x, square=True)
    x = adjoint(x) if upper else x
    symmetric = (x + adjoint(x)) / 2
    read = lax.stop_gradient(jnp.tril(x) - symmetric)  # in value the lower triangle, in gradient both
    factor = lax.linalg.cholesky(symmetric + read, symmetrize_input=False)
    failed = jnp.any(jnp.isnan(jnp.real(lax.stop_gradient(factor))), (-2, -1)).astype(np.int32)
    return adjoint(factor) if upper else factor, failed


def cholesky(x, /, upper: bool = False):
    """Return the Cholesky factor of Hermitian matrices."""
    return cholesky_ex(x, upper=upper)[0]


def cholesky_solve(b, factor, /, upper: bool = False):
    """Return x with ``A x = b``, where ``factor`` is the Cholesky factor of A."""
    check_matrices("cholesky_solve", b, factor)
    batch = np.broadcast_shapes(b.shape[:-2], factor.shape[:-2])
    b, factor = (jnp.broadcast_to(z, (*batch, *z.shape[-2:])) for z in (b, factor))
    lower = adjoint(factor) if upper else factor
    lower = lower + lax.stop_gradient(jnp.tril(lower) - lower)  # as torch's, the gradient is that of a full matrix

    def solve(by, y):
        half = lax.linalg.triangular_solve(by, y, left_side=True, lower=True)
        return lax.linalg.triangular_solve(by, half, left_side=True, lower=True, transpose_a=True, conjugate_a=True)

    return lax.custom_linear_solve(
        lambda y: dot(lower, dot(adjoint(lower), y)),
        b,
        lambda _, y: solve(lax.stop_gradient(lower), y),
        lambda _, y: solve(jnp.conj(lax.stop_gradient(lower)), y),
    )


def cholesky_inverse(factor, /, upper: bool = False):
    """Return the inverse of the matrix whose Cholesky factor is given."""
    check_matrices("cholesky_inverse", factor, square=True)
    return cholesky_solve(identity(factor, factor.shape[-1]), factor, upper=upper)


# -------------------------------------------------------------------------------------------------------- LU, det


def singular(lu) -> jax.Array:
    """Return for each LU decomposition the number, from 1, of its first pivot that is 0; 0 if none is."""
    pivots = jnp.diagonal(lax.stop_gradient(lu), axis1=-2, axis2=-1)
    zero = lax.eq(pivots, np.zeros((), lu.dtype))
    if pivots.shape[-1] == 0:
        return jnp.zeros(pivots.shape[:-1], np.int32)
    first = lax.argmax(zero, zero.ndim - 1, np.int32)
    return lax.select_n(jnp.any(zero, -1), jnp.zeros_like(first), first + np.int32(1))


def lu_factor(x, /):
    """Return LU in one matrix, LAPACK's pivots counted from 1, and where U is singular (int32, 0 for nowhere)."""
    check_matrices("linalg.lu_factor", x)
    lu, pivots, _ = lax.linalg.lu(x)
    return lu, pivots.astype(np.int32) + np.int32(1), singular(lu)


def lu_unpack(lu, pivots, /, unpack_data: bool = True, unpack_pivots: bool = True):
    """Return P, L and U of a result of `lu_factor`; empty ones if not requested."""
    m, n = lu.shape[-2:]
    k = min(m, n)
    none = jnp.zeros((0,), lu.dtype)
    p, low, high = none, none, none
    if unpack_pivots:
        order = lax.linalg.lu_pivots_to_permutation(pivots - np.int32(1), m)
        p = (lax.expand_dims(order, (order.ndim - 1,)) == jnp.arange(m, dtype=order.dtype)[:, None]).astype(lu.dtype)
    if unpack_data:
        low = jnp.tril(lu[..., :, :k], -1) + jnp.eye(m, k, dtype=lu.dtype)
        high = jnp.triu(lu[..., :k, :])
    return p, low, high


def lu(x, /, pivot: bool = True):
    """Return P, L, U with ``x = P L U``."""
    check_matrices("linalg.lu", x)
    if not pivot:
        fail("shape", "linalg.lu(pivot=False)", "a tensor on the CPU", "LU without pivoting needs a GPU", "pivot=True")
    packed, pivots, _ = lax.linalg.lu(x)
    return lu_unpack(packed, pivots.astype(np.int32) + np.int32(1))


def _sign_of(order):
    """Return +1 or -1 for permutations in the last dim."""
    n = order.shape[-1]
    later = jnp.triu(jnp.ones((n, n), bool), 1)
    inverted = lax.gt(lax.expand_dims(order, (order.ndim,)), lax.expand_dims(order, (order.ndim - 1,)))
    return 1 - 2 * (jnp.sum(inverted & later, (-2, -1)) % 2)


@jax.custom_jvp
def _det(x):
    packed, _, order = lax.linalg.lu(x)
    return jnp.prod(jnp.diagonal(packed, axis1=-2, axis2=-1), -1) * _sign_of(order).astype(x.dtype)


@_det.defjvp
def _det_jvp(primals, tangents):
    # det(x) tr(x^-1 dx); a zero pivot counts as eps, so that the gradient of a singular matrix is finite, as torch's
    (x,), (dx,) = primals, tangents
    packed, _, order = lax.linalg.lu(x)
    pivots = jnp.diagonal(packed, axis1=-2, axis2=-1)
    zero = jnp.zeros((), x.dtype)
    moved = jnp.where(pivots == zero, jnp.asarray(jnp.finfo(x.dtype).eps, x.dtype), zero)
    filled = packed + jnp.eye(x.shape[-1], dtype=x.dtype) * moved[..., None, :]
    value = _det(x)
    low = jnp.tril(filled, -1) + jnp.eye(x.shape[-1], dtype=x.dtype)
    rows = jnp.take_along_axis(dx, lax.expand_dims(order, (order.ndim,)), -2)
    half = lax.linalg.triangular_solve(low, rows, left_side=True, lower=True, unit_diagonal=True)
    out = lax.linalg.triangular_solve(jnp.triu(filled), half, left_side=True, lower=False)
    return value, value * jnp.trace(out, axis1=-2, axis2=-1)


def det(x, /):
    """Return the determinants of square matrices; the gradient at a singular one is 0, as torch's."""
    check_matrices("linalg.det", x, square=True)
    return _det(x)


def slogdet(x, /):
    """Return the sign (a unit complex number) and the logarithm of the absolute value of determinants."""
    check_matrices("linalg.slogdet", x, square=True)
    packed, _, order = lax.linalg.lu(x)
    pivots = jnp.diagonal(packed, axis1=-2, axis2=-1)
    size = jnp.abs(pivots)
    unit = pivots / jnp.where(size == 0, jnp.ones((), size.dtype), size).astype(x.dtype)
    if not jnp.iscomplexobj(x):
        unit = jnp.sign(lax.stop_gradient(pivots))
    return jnp.prod(unit, -1) * _sign_of(order).astype(x.dtype), jnp.sum(jnp.log(size), -1)


def logdet(x, /):
    """Return the logarithm of determinants; NaN for a negative one."""
    sign, size = slogdet(x)
    if jnp.iscomplexobj(x):
        return size + jnp.log(sign)
    return jnp.where(sign < 0, jnp.full((), np.nan, size.dtype), size)


# ------------------------------------------------------------------------------------------------------------- QR


def qr(x, /, mode: str = "reduced"):
    """Return Q and R with ``x = Q R``.

    Args:
        x: ``(..., M, N)``.
        mode: ``"reduced"`` gives K = min(M, N) columns of Q, ``"complete"`` M, ``"r"`` an empty Q.
    """
    check_matrices("linalg.qr", x)
    if mode not in ("reduced", "complete", "r"):
        rule = "qr received unrecognized mode: it is one of 'reduced' (the default), 'r', or 'complete'"
        fail("shape", f"linalg.qr(mode={mode!r})", f"mode={mode!r}", rule, "mode='reduced'")
    m, n = x.shape[-2:]
    if m >= n:
        q, r = lax.linalg.qr(x, full_matrices=mode == "complete" and m > n)
    else:  # the first M columns determine Q; so the gradient is that of a square matrix
        q, left = lax.linalg.qr(x[..., :m], full_matrices=False)
        r = jnp.concatenate([left, dot(adjoint(q), x[..., m:])], -1)
    return (jnp.zeros((0,), x.dtype) if mode == "r" else q), r


# ---------------------------------------------------------------------------------------------- singular values


def _svd(x, **options):
    """Return `jax.lax.linalg.svd`, NaN for a matrix with inf, on which LAPACK's gesdd may not come to an end."""
    return lax.linalg.svd(jnp.where(jnp.isfinite(x).all((-2, -1), keepdims=True), x, jnp.nan), **options)


def svd(x, /, full_matrices: bool = True):
    """Return U, S and V^H with ``x = U diag(S) V^H``.

    Args:
        x: ``(..., M, N)``.
        full_matrices: give all M columns of U and N rows of V^H; gradients go through the first min(M, N).
    """
    check_matrices("linalg.svd", x)
    m, n = x.shape[-2:]
    u, s, vh = _svd(x, full_matrices=False)
    if full_matrices and m != n:
        whole = _svd(lax.stop_gradient(x), full_matrices=True)
        if m > n:
            u = jnp.concatenate([u, whole[0][..., n:]], -1)
        else:
            vh = jnp.concatenate([vh, whole[2][..., m:, :]], -2)
    return u, s, vh


def svdvals(x, /):
    """Return the singular values of matrices, largest first."""
    check_matrices("linalg.svdvals", x)
    return _svd(x, full_matrices=False, compute_uv=False)


# ---------------------------------------------------------------------------------------------------- eigenvalues


def _triangle(uplo: str, op: str) -> bool:
    if uplo not in ("L", "U"):
        fail("shape", f"{op}(UPLO={uplo!r})", f"UPLO={uplo!r}", "UPLO is 'L' or 'U'", "UPLO='L'")
    return uplo == "L"


def eigh(x, /, UPLO: str = "L"):
    """Return the eigenvalues of Hermitian matrices, smallest first, and their eigenvectors as columns."""
    check_matrices("linalg.eigh", x, square=True)
    lower = _triangle(UPLO.upper() if isinstance(UPLO, str) else UPLO, "linalg.eigh")
    vectors, values = lax.linalg.eigh(_hermitian(x, lower), symmetrize_input=False)
    return values, vectors


def _hermitian(x, lower: bool):
    """Return the Hermitian matrix of one triangle; as torch's, its gradient is halved between both."""
    half = jnp.tril(x) if lower else jnp.triu(x)
    strict = jnp.tril(x, -1) if lower else jnp.triu(x, 1)
    symmetric = (x + adjoint(x)) / 2
    return symmetric + lax.stop_gradient(half + adjoint(strict) - symmetric)


def eigvalsh(x, /, UPLO: str = "L"):
    """Return the eigenvalues of Hermitian matrices, smallest first."""
    return eigh(x, UPLO=UPLO)[0]


@jax.custom_jvp
def _eig(x):
    values, vectors = lax.linalg.eig(x, compute_left_eigenvectors=False, compute_right_eigenvectors=True)
    return values, vectors


@_eig.defjvp
def _eig_jvp(primals, tangents):
    (x,), (dx,) = primals, tangents
    values, vectors = _eig(x)
    inner = jnp.linalg.solve(vectors, dot(dx.astype(vectors.dtype), vectors))
    gaps = values[..., None, :] - values[..., :, None]
    own = jnp.eye(values.shape[-1], dtype=bool)
    mixed = jnp.where(own, 0, inner / jnp.where(own, 1, gaps))
    move = dot(vectors, mixed)
    along = jnp.real(jnp.sum(lax.conj(vectors) * move, -2))  # eigenvectors stay of length 1
    return (values, vectors), (
        jnp.diagonal(inner, axis1=-2, axis2=-1),
        move - vectors * along[..., None, :].astype(vectors.dtype),
    )


def eig(x, /):
    """Return the complex eigenvalues of square matrices and their eigenvectors, of length 1, as columns."""
    check_matrices("linalg.eig", x, square=True)
    return _eig(x)


def eigvals(x, /):
    """Return the complex eigenvalues of square matrices."""
    return eig(x)[0]


def householder_product(x, tau, /):
    """Return the first N columns of the product of Householder reflections, as LAPACK's ``orgqr``."""
    check_matrices("linalg.householder_product", x)
    return _multiply_reflectors(x, tau)


def reflections(x, /):
    """Return the Householder reflections of a QR factorisation with its upper triangle, as LAPACK's ``geqrf``."""
    check_matrices("geqrf", x)
    packed, tau = jnp.linalg.qr(x, mode="raw")  # NumPy's form: transposed
    return jnp.swapaxes(packed, -1, -2), tau


def reflect(x, tau, other, /, left: bool = True, transpose: bool = False):
    """Return the product of ``other`` with all columns of a product of Householder reflections, as LAPACK's ``ormqr``.

    Args:
        x: ``(..., M, K)``, the reflections below the diagonal, as `geqrf` returns them.
        tau: ``(..., K)``.
        other: ``(..., M, N)``, or ``(..., N, M)`` from the right.
        left: multiply from the left.
        transpose: multiply by the conjugate transpose.
    """
    check_matrices("ormqr", x, other)
    same_dtype("ormqr", x, tau)
    m, k = x.shape[-2], min(x.shape[-2:])
    sizes = f"input {x.shape}, tau {tau.shape}, other {other.shape}"
    if other.shape[:-2] != x.shape[:-2] or tau.shape[:-1] != x.shape[:-2]:
        rule = "ormqr: input, tau and other have the same batch dims"
        fail("shape", "ormqr(input, tau, other)", sizes, rule, "expand them to the same")
    if other.shape[-2 if left else -1] != m:
        rule = f"ormqr: other.shape[{-2 if left else -1}] must be equal to input.shape[-2]"
        fail("value", "ormqr(input, tau, other)", sizes, rule, "other.mT")
    if tau.shape[-1] != k:
        rule = f"ormqr: tau.shape[-1] must be equal to {k}, the smaller size of the input"
        fail("shape", "ormqr(input, tau, other)", sizes, rule, f"tau[..., :{k}]")
    none = [(0, 0)] * (x.ndim - 1)
    square = jnp.pad(x[..., :k], [*none, (0, m - k)])  # columns of no reflection complete the square matrix
    q = _multiply_reflectors(square, jnp.pad(tau, [*none[:-1], (0, m - k)]))
    q = jnp.conj(jnp.swapaxes(q, -1, -2)) if transpose else q
    return dot(q, other) if left else dot(other, q)


@jax.custom_jvp
def _multiply_reflectors(x, tau):
    return lax.linalg.householder_product(x, tau)


@_multiply_reflectors.defjvp
def _(primals, tangents):
    # JAX's own has no derivative; that of the reflections one by one needs no factorisation
    return _multiply_reflectors(*primals), jax.jvp(_one_by_one, primals, tangents)[1]


def _one_by_one(x, tau):
    rows, columns = x.shape[-2:]
    product = jnp.broadcast_to(jnp.eye(rows, columns, dtype=x.dtype), x.shape)
    for i in reversed(range(tau.shape[-1])):
        below = np.arange(rows)[:, None] > i
        v = jnp.where(below, x[..., i : i + 1], jnp.asarray(np.arange(rows)[:, None] == i, x.dtype))
        product = product - tau[..., i, None, None] * v @ (adjoint(v) @ product)
    return product


# Of a norm up to this the series has the dtype's accuracy at this degree (Bader, Blanes and Casas, 2019, table 2).
_SERIES = {4: (12, 1.461661507209034), 8: (18, 1.090863719290036)}
_MOST_SQUARINGS = 16


def matrix_exp(x, /):
    """Return the exponentials of square matrices: the series of ``x / 2**s``, squared s times."""
    wide = cast(x, compute_dtype(x.dtype))
    check_matrices("linalg.matrix_exp", wide, square=True)
    if wide.size == 0:
        return x
    degree, bound = _SERIES[np.finfo(wide.dtype).dtype.itemsize]
    norm = lax.stop_gradient(jnp.max(jnp.sum(jnp.abs(wide), -2), -1))
    halvings = jnp.ceil(jnp.log2(norm / np.asarray(bound, norm.dtype)))
    halvings = jnp.where(jnp.isfinite(halvings), jnp.clip(halvings, 0, _MOST_SQUARINGS), 0)
    scaled = wide * lax.expand_dims(jnp.exp2(-halvings), (x.ndim - 2, x.ndim - 1)).astype(wide.dtype)
    times, most = lax.expand_dims(halvings, (x.ndim - 2, x.ndim - 1)), jnp.max(halvings)

    def square(iteration, y):
        return lax.cond(iteration < most, lambda y: jnp.where(iteration < times, dot(y, y), y), lambda y: y, y)

    return cast(lax.fori_loop(0, _MOST_SQUARINGS, square, _exp_series(scaled, degree)), x.dtype)


def _exp_series(x, degree: int):
    """Return ``sum_k x^k / k!`` up to a degree that is three times a whole number, by blocks of that length."""
    length = degree // 3
    powers = [identity(x, x.shape[-1]), x]
    while len(powers) <= length:
        half = len(powers) // 2
        powers.append(dot(powers[half], powers[len(powers) - half]))

    def block(first: int):
        terms = [powers[i] * np.asarray(1 / math.factorial(first + i), x.dtype) for i in range(length)]
        return functools.reduce(lax.add, reversed(terms))  # the small ones first

    out = block(2 * length) + powers[length] * np.asarray(1 / math.factorial(degree), x.dtype)
    for first in (length, 0):
        out = block(first) + dot(powers[length], out)
    return out
