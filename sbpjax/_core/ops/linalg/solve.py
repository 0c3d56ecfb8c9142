"""Linear solves, inverses, pseudoinverses, least squares and matrix powers.

`solve` decomposes once and solves with the factors, forward and backward alike: the gradient of ``A x = b`` is a solve
with A^H by the same LU. Worked case: b of shape (3,) beside A of shape (3, 3) is one vector; of shape (3, 2), two.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..dims import fail
from ..promote import INT64, cast, is_float
from ..reductions.products import running_product
from .decompose import adjoint, check_matrices, dot, eigh, identity, singular, svd, svdvals


def _back(packed, order, b, trans: int):
    """Solve with LU factors: trans 0 for A, 1 for A^T."""

    def tri(y, **how):
        return lax.linalg.triangular_solve(packed, y, left_side=True, **how)

    if trans == 0:
        b = jnp.take_along_axis(b, lax.expand_dims(order, (order.ndim,)), -2)
        return tri(tri(b, lower=True, unit_diagonal=True), lower=False)
    b = tri(tri(b, lower=False, transpose_a=True), lower=True, unit_diagonal=True, transpose_a=True)
    undo = jnp.argsort(order, -1)
    return jnp.take_along_axis(b, lax.expand_dims(undo, (undo.ndim,)), -2)


def _solve_stacks(a, b):
    """Return the solution for stacks of matrices of one batch shape, and the place of a zero pivot."""
    packed, _, order = lax.linalg.lu(lax.stop_gradient(a))
    out = lax.custom_linear_solve(
        lambda x: dot(a, x),
        b,
        lambda _, y: _back(packed, order, y, 0),
        lambda _, y: _back(packed, order, y, 1),
    )
    return out, singular(packed)


def solve_ex(a, b, /, left: bool = True):
    """Return x with ``a x = b`` (``x a = b`` if not ``left``) and where a is singular (int32, 0 for nowhere).

    Args:
        a: ``(..., N, N)``.
        b: ``(..., N, K)``, or vectors ``(..., N)`` in the batch shape of a.
        left: whether the matrix is on the left of x.
    """
    check_matrices("linalg.solve", a, square=True)
    if b.dtype != a.dtype:
        check_matrices("linalg.solve", a, jnp.zeros((1, 1), b.dtype))
    vector = b.ndim == 1 or (b.ndim == a.ndim - 1 and b.shape == a.shape[:-1])
    if vector:
        if not left:
            fail("shape", "linalg.solve(left=False)", f"B {b.shape}", "vectors stand on the right", "B.unsqueeze(-2)")
        b = lax.expand_dims(b, (b.ndim,))
    if b.ndim < 2 or b.shape[-2 if left else -1] != a.shape[-1]:
        rule = "Incompatible shapes of A and B for the equation AX = B"
        fail("shape", "linalg.solve(A, B)", f"A {a.shape}, B {b.shape}", rule, f"a B with {a.shape[-1]} rows")
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = (jnp.broadcast_to(z, (*batch, *z.shape[-2:])) for z in (a, b))
    if left:
        out, info = _solve_stacks(a, b)
    else:
        out, info = _solve_stacks(jnp.swapaxes(a, -1, -2), jnp.swapaxes(b, -1, -2))
        out = jnp.swapaxes(out, -1, -2)
    return (lax.squeeze(out, (out.ndim - 1,)) if vector else out), info


def inv_ex(a, /):
    """Return the inverses of square matrices, and where there is none (int32, 0 for nowhere)."""
    check_matrices("linalg.inv", a, square=True)
    return _solve_stacks(a, identity(a, a.shape[-1]))


def lu_solve(packed, pivots, b, /, left: bool = True, adjoint: bool = False):
    """Return the solution for a result of `lu_factor`; with ``adjoint`` for A^H."""
    if packed.shape[:-1] != pivots.shape or b.ndim < 2 or b.shape[-2 if left else -1] != packed.shape[-1]:
        seen = f"LU {packed.shape}, pivots {pivots.shape}, B {b.shape}"
        rule = "LU is (*, n, n) with pivots (*, n), and B has n rows (n columns if it is on the left)"
        fail("shape", "linalg.lu_solve(LU, pivots, B)", seen, rule, "the LU and pivots of one lu_factor(A)")
    batch = np.broadcast_shapes(packed.shape[:-2], b.shape[:-2])
    n = packed.shape[-1]
    packed, b = (jnp.broadcast_to(z, (*batch, *z.shape[-2:])) for z in (packed, b))
    order = jnp.broadcast_to(lax.linalg.lu_pivots_to_permutation(pivots - np.int32(1), n), (*batch, n))
    if not left:
        b = jnp.swapaxes(b, -1, -2)
    trans = int(adjoint) if left else 1 - int(adjoint)
    conjugate = adjoint and jnp.iscomplexobj(packed)  # x A^H = b is conj(A) x^T = b^T
    out = _back(jnp.conj(packed) if conjugate else packed, order, b, trans)
    return out if left else jnp.swapaxes(out, -1, -2)


def solve_triangular(a, b, /, upper: bool, left: bool = True, unitriangular: bool = False):
    """Return x with ``a x = b`` for triangular matrices; the other triangle is not read."""
    check_matrices("linalg.solve_triangular", a, b)
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = (jnp.broadcast_to(z, (*batch, *z.shape[-2:])) for z in (a, b))
    return lax.linalg.triangular_solve(a, b, left_side=left, lower=not upper, unit_diagonal=unitriangular)


# --------------------------------------------------------------------------------------------------- pseudoinverses


def _bounds(s, shape, atol, rtol):
    """Return the value up to which a singular value counts as 0, for stacks of values."""
    eps = float(jnp.finfo(s.dtype).eps)
    if rtol is None:
        rtol = eps * max(shape[-2:]) if atol is None else 0.0
        if atol is not None and not isinstance(atol, (int, float)):
            rtol = jnp.where(atol > 0, 0.0, eps * max(shape[-2:])).astype(s.dtype)
    largest = jnp.max(s, -1, initial=0)
    relative = cast(rtol, s.dtype) * largest
    return relative if atol is None else jnp.maximum(cast(atol, s.dtype), relative)


def matrix_rank(a, atol=None, rtol=None, /, hermitian: bool = False):
    """Return the number of singular values above ``max(atol, rtol * the largest)``, in int64."""
    check_matrices("linalg.matrix_rank", a)
    s = jnp.abs(eigh(a)[0]) if hermitian else svdvals(a)
    bound = _bounds(s, a.shape, atol, rtol)
    return jnp.sum(s > lax.expand_dims(bound, (bound.ndim,)), -1, dtype=np.int64)


def pinv(a, atol=None, rtol=None, /, hermitian: bool = False):
    """Return the Moore-Penrose inverses of matrices."""
    check_matrices("linalg.pinv", a)
    if 0 in a.shape[-2:]:
        return jnp.zeros((*a.shape[:-2], a.shape[-1], a.shape[-2]), a.dtype)
    return _pinv(a, atol, rtol, hermitian)


def _pinv(a, atol, rtol, hermitian: bool):
    @jax.custom_jvp
    def inverse(x):
        if hermitian:
            values, vectors = eigh(x)
            u, s, vh = vectors, jnp.abs(values), adjoint(vectors) * jnp.sign(values).astype(x.dtype)[..., :, None]
        else:
            u, s, vh = svd(x, full_matrices=False)
        bound = _bounds(s, x.shape, atol, rtol)
        keep = s > lax.expand_dims(bound, (bound.ndim,))
        scale = jnp.where(keep, 1 / jnp.where(keep, s, 1), 0).astype(x.dtype)
        return dot(adjoint(vh) * scale[..., None, :], adjoint(u))

    @inverse.defjvp
    def inverse_jvp(primals, tangents):
        # Golub and Pereyra, 1973: the derivative at constant rank
        (x,), (dx,) = primals, tangents
        p = inverse(x)
        rows, columns = identity(x, x.shape[-2]), identity(x, x.shape[-1])
        out = -dot(dot(p, dx), p)
        out += dot(dot(dot(p, adjoint(p)), adjoint(dx)), rows - dot(x, p))
        out += dot(dot(columns - dot(p, x), adjoint(dx)), dot(adjoint(p), p))
        return p, out

    return inverse(a)


def lstsq(a, b, /, rcond: float | None = None):
    """Return the least-squares solution of ``a x = b`` of least norm, its squared residuals, rank, singular values.

    Args:
        a: ``(..., M, N)``.
        b: ``(..., M, K)``, or ``(..., M)`` in the batch shape of a.
        rcond: singular values up to ``rcond`` times the largest count as 0.
    """
    check_matrices("linalg.lstsq", a)
    vector = b.ndim == a.ndim - 1 and b.shape == a.shape[:-1]
    b = lax.expand_dims(b, (b.ndim,)) if vector else b
    s = svdvals(lax.stop_gradient(a))
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = (jnp.broadcast_to(z, (*batch, *z.shape[-2:])) for z in (a, b))
    m, n = a.shape[-2:]
    rcond = float(jnp.finfo(a.dtype).eps) * max(m, n) if rcond is None else rcond
    out = dot(pinv(a, None, rcond), b)
    bound = _bounds(s, (*s.shape[:-1], m, n), None, rcond)
    rank = jnp.sum(s > lax.expand_dims(bound, (bound.ndim,)), -1, dtype=np.int64)
    rest = jnp.sum(jnp.square(jnp.abs(dot(a, out) - b)), -2)
    return (lax.squeeze(out, (out.ndim - 1,)) if vector else out), rest, rank, s


# ---------------------------------------------------------------------------------------------------- several dims


def tensorsolve(a, b, /, dims: tuple[int, ...] | None = None):
    """Return x with ``tensordot(a, x, x.ndim) = b``, and where there is none; ``dims`` of a go after the others."""
    if dims is not None:
        dims = tuple(d % a.ndim for d in dims)
        a = lax.transpose(a, tuple(d for d in range(a.ndim) if d not in dims) + dims)
    shape = a.shape[b.ndim :]
    if not math.prod(shape) == math.prod(b.shape) == math.prod(a.shape[: b.ndim]):
        rule = "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim])"
        fail("shape", "linalg.tensorsolve(A, B)", f"A {a.shape}, B {b.shape}", rule, "reshape A")
    n = math.prod(b.shape)
    x, info = solve_ex(a.reshape(n, n), b.reshape(n))
    return x.reshape(shape), info


def tensorinv(a, /, ind: int = 2):
    """Return the inverse of a in the sense of `tensordot` over its dims from ``ind`` on, and where there is none."""
    first, rest = a.shape[:ind], a.shape[ind:]
    if ind <= 0 or math.prod(first) != math.prod(rest):
        rule = "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), ind > 0"
        fail("shape", f"linalg.tensorinv(ind={ind})", f"A {a.shape}", rule, "choose ind")
    n = math.prod(rest)
    inverse, info = inv_ex(a.reshape(n, n))
    return inverse.reshape(*rest, *first), info


def matrix_power(a, /, n: int):
    """Return the n-th power of square matrices by repeated squaring; n is not negative."""
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        rule = "A must be batches of square matrices"
        fail("shape", f"linalg.matrix_power(n={n})", f"A {a.shape}", rule, "slice it to a square")
    out = identity(a, a.shape[-1]) if n == 0 else None
    while n:
        if n & 1:
            out = a if out is None else dot(out, a)
        n >>= 1
        if n:
            a = dot(a, a)
    return out


def multi_dot(*arrays):
    """Return the product of several matrices in the cheapest order; the first and the last may be vectors."""
    if len(arrays) < 2:
        fail("shape", "linalg.multi_dot(...)", f"{len(arrays)} tensors", "expected at least 2 tensors", "use matmul")
    if len({x.dtype for x in arrays}) > 1:
        seen = ", ".join(str(x.dtype) for x in arrays)
        fail("type", "linalg.multi_dot(...)", seen, "all tensors must have the same dtype", "x.to(y.dtype)")
    first, last = arrays[0].ndim == 1, arrays[-1].ndim == 1
    chain = list(arrays)
    chain[0] = lax.expand_dims(chain[0], (0,)) if first else chain[0]
    chain[-1] = lax.expand_dims(chain[-1], (1,)) if last else chain[-1]
    sizes = [chain[0].shape[0], *(x.shape[1] for x in chain)]
    if any(x.ndim != 2 for x in chain) or any(x.shape[0] != n for x, n in zip(chain, sizes, strict=False)):
        seen = ", ".join(str(x.shape) for x in arrays)
        fail("shape", "linalg.multi_dot(...)", seen, "tensors cannot be multiplied: inner sizes agree", "transpose one")
    count = len(chain)
    cost: dict = {(i, i): (0, 0) for i in range(count)}
    for span in range(1, count):
        for i in range(count - span):
            j = i + span
            cost[i, j] = min(
                (cost[i, k][0] + cost[k + 1, j][0] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)
            )

    def product(i: int, j: int):
        if i == j:
            return chain[i]
        k = cost[i, j][1]
        return dot(product(i, k), product(k + 1, j))

    out = product(0, count - 1)
    gone = (0,) * first + (1,) * last
    return lax.squeeze(out, gone) if gone else out


def vander(x, /, N: int | None = None, increasing: bool = True):
    """Return the powers 0 to N - 1 of the last dim's elements along a new last dim; those of integers are int64."""
    x = x if x.ndim else lax.reshape(x, (1,))
    n = x.shape[-1] if N is None else N
    if n <= 1:
        fail("shape", f"linalg.vander(N={N})", f"x {x.shape}", "N must be greater than 1.", "N=2")
    return _powers(x, n, increasing)


def vector_powers(x, /, N: int | None = None, increasing: bool = False):
    """Return the powers N - 1 to 0 of a vector's elements as rows; those of integers and booleans are int64."""
    if x.ndim != 1:
        fail("shape", "vander(x)", f"x {x.shape}", "x must be a one-dimensional tensor.", "x.flatten()")
    n = x.shape[0] if N is None else N
    if n < 0:
        fail("shape", f"vander(N={N})", f"x {x.shape}", "N must be non-negative.", "N=2")
    return _powers(x, n, increasing)


def _powers(x, n: int, increasing: bool):
    x = x if is_float(x.dtype) else cast(x, INT64)
    ones = jnp.ones((*x.shape, min(n, 1)), x.dtype)
    if n > 1:
        spread = jnp.broadcast_to(lax.expand_dims(x, (x.ndim,)), (*x.shape, n - 1))
        product = running_product if is_float(x.dtype) else lax.cumprod
        ones = jnp.concatenate([ones, product(spread, x.ndim)], -1)
    return ones if increasing else lax.rev(ones, (ones.ndim - 1,))
