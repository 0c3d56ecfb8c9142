"""LDL factorisation of symmetric indefinite matrices, ``A = L D L^T`` with pivots, and its solve.

The factorisation is Bunch and Kaufman's (1977), in LAPACK's gauge and packing (``sytf2`` and ``hetf2``, lower). Worked
case: ``[[0, 1], [1, 0]]`` has no pivot of size 1 at its start, so D is one block of size 2: ``LD`` is the lower
triangle ``[[0, 0], [1, 0]]`` and the pivots are ``[-2, -2]``, negative for a block, counted from 1.

Both functions go over the columns in one loop whose length is the matrix's size; batch dims in front pass through, as
`jax.vmap` makes them. A block takes two iterations, the second of which does nothing, so that those of a batch
agree.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..dims import fail
from .decompose import check_matrices

_ALPHA = (1 + math.sqrt(17)) / 8  # bounds the growth of elements


def _over_batch(function, *ndims: int):
    """Return a function of single arrays as one of stacks of them, all with the same number of batch dims."""
    for _ in range(max(ndims)):
        function = jax.vmap(function)
    return function


def ldl_factor_ex(x, /, hermitian: bool = False):
    """Return L and D in one matrix, the pivots, and the first column where D is singular (int32, 0 for nowhere).

    Args:
        x: ``(..., N, N)``, symmetric, or Hermitian if `hermitian`; only the lower triangle is read.
        hermitian: whether the other triangle of a complex matrix is the conjugate.
    """
    check_matrices("linalg.ldl_factor_ex", x, square=True)
    hermitian = hermitian and jnp.iscomplexobj(x)
    return _over_batch(lambda a: _factor(a, hermitian), x.ndim - 2)(lax.stop_gradient(x))


def _size(x, hermitian: bool):
    """Return LAPACK's measure of size: |x|, of a complex number the sum of both parts' sizes."""
    return jnp.abs(x.real) + jnp.abs(x.imag) if jnp.iscomplexobj(x) else jnp.abs(x)


def _factor(a, hermitian: bool):
    n = a.shape[-1]
    if n == 0:
        return a, jnp.zeros((0,), np.int32), jnp.zeros((), np.int32)
    i = lax.iota(np.int32, n)
    other = jnp.conj if hermitian else lambda x: x
    lower = jnp.tril(a, -1)
    own = jnp.diagonal(a)
    own = own.real.astype(a.dtype) if hermitian else own
    a = lower + other(lower).T + jnp.diag(own)

    def step(k, state):
        a, pivots, info, second = state
        k = k.astype(np.int32)
        sizes = _size(a[:, k], hermitian)
        below = jnp.where(i > k, sizes, -1)
        far = jnp.argmax(below).astype(np.int32)
        here, most = sizes[k], jnp.maximum(below[far], 0)
        row = _size(a[far], hermitian)
        widest = jnp.max(jnp.where((i >= k) & (i != far), row, 0))
        empty = jnp.maximum(here, most) == 0
        stay = empty | (here >= _ALPHA * most) | (here >= _ALPHA * most * (most / widest))
        pair = ~stay & ~(row[far] >= _ALPHA * widest)
        pivot = jnp.where(stay, k, far)
        last = k + pair
        swapped = jnp.where(i == last, pivot, jnp.where(i == pivot, last, i))
        trailing = (i[:, None] >= k) & (i[None, :] >= k)
        moved = jnp.where(trailing, a[swapped][:, swapped], a)

        first, next_ = moved[:, k], moved[:, k + 1]
        at, cross, beyond = first[k], first[k + 1], next_[k + 1]
        scale = jnp.where(pair, cross, 1)
        p, q = at / scale, beyond / other(scale)
        by = jnp.where(pair, p * q - 1, 1)
        single = first / jnp.where(empty | pair, 1, at)
        left = jnp.where(pair, (first * q / scale - next_ / other(scale)) / by, jnp.where(empty, first, single))
        right = jnp.where(pair, (next_ * p / other(scale) - first / scale) / by, 0)
        rest = i > last
        left, right = jnp.where(rest, left, 0), jnp.where(rest, right, 0)
        taken = left[:, None] * other(first)[None, :] + right[:, None] * other(next_)[None, :]
        after = jnp.where(rest[:, None] & rest[None, :] & ~empty, moved - taken, moved)
        after = jnp.where(rest[:, None] & (i == k)[None, :], left[:, None], after)
        after = jnp.where(rest[:, None] & pair & (i == k + 1)[None, :], right[:, None], after)

        sign = jnp.where(pair, -1, 1).astype(np.int32)
        given = (i == k) | (pair & (i == k + 1))
        noted = jnp.where(given, sign * (pivot + 1), pivots).astype(np.int32)
        found = jnp.where(empty & (info == 0), k + 1, info).astype(np.int32)
        new = after, noted, found, pair
        old = a, pivots, info, jnp.zeros((), bool)
        return tuple(jnp.where(second, o, m) for o, m in zip(old, new, strict=True))

    start = a, jnp.zeros((n,), np.int32), jnp.zeros((), np.int32), jnp.zeros((), bool)
    a, pivots, info, _ = lax.fori_loop(0, n, step, start)
    return jnp.tril(a), pivots, info


def ldl_solve(packed, pivots, b, /, hermitian: bool = False):
    """Return the solution of ``A x = b`` for a result of `ldl_factor_ex`.

    Args:
        packed: ``(..., N, N)``.
        pivots: ``(..., N)`` int32.
        b: ``(..., N, K)``; batch dims broadcast.
        hermitian: as it was decomposed.
    """
    check_matrices("linalg.ldl_solve", packed, square=True)
    check_matrices("linalg.ldl_solve", packed, b)
    n = packed.shape[-1]
    if b.shape[-2] != n or pivots.shape != packed.shape[:-1] or pivots.dtype.kind != "i":
        rule = "LD (..., N, N), integer pivots of LD.shape[:-1], B (..., N, K)"
        seen = f"LD {packed.shape}, pivots {pivots.shape} of {pivots.dtype}, B {b.shape}"
        fail("shape", "linalg.ldl_solve(LD, pivots, B)", seen, rule, "pass the results of linalg.ldl_factor")
    batch = np.broadcast_shapes(packed.shape[:-2], b.shape[:-2])
    packed, b = (jnp.broadcast_to(z, (*batch, *z.shape[-2:])) for z in (packed, b))
    pivots = jnp.broadcast_to(pivots, (*batch, n))
    if 0 in b.shape:
        return b
    hermitian = hermitian and jnp.iscomplexobj(packed)
    return _over_batch(lambda p, o, y: _solve_ldl(p, o, y, hermitian), len(batch))(packed, pivots, b)


def _solve_ldl(packed, pivots, b, hermitian: bool):
    n = packed.shape[-1]
    i = lax.iota(np.int32, n)
    other = jnp.conj if hermitian else lambda x: x

    def swap(x, one, two):
        return x[jnp.where(i == one, two, jnp.where(i == two, one, i))]

    def block(k):
        """Return whether a block of two starts at k, where it ends, its pivot, and its columns below itself."""
        pair = pivots[k] < 0
        last = k + pair
        below = i > last
        columns = jnp.where(below, packed[:, k], 0), jnp.where(below & pair, packed[:, k + 1], 0)
        return pair, last, jnp.abs(pivots[k]) - 1, columns

    def down(k, state):  # D^-1 L^-1 P
        b, second = state
        pair, last, pivot, (left, right) = block(k)
        x = swap(b, last, pivot)
        one, two = x[k], x[k + 1]
        x = x - left[:, None] * one - right[:, None] * two
        # a second iteration divides by 1: its result is dropped, but a gradient must stay finite
        at, cross, beyond = jnp.where(second, 1, packed[k, k]), packed[k + 1, k], packed[k + 1, k + 1]
        divided = pair & ~second
        scale = jnp.where(divided, cross, 1)
        p, q = at / other(scale), beyond / scale
        by = jnp.where(divided, p * q - 1, 1)
        first = jnp.where(divided, (q * one / other(scale) - two / scale) / by, one / jnp.where(divided, 1, at))
        then = (p * two / scale - one / other(scale)) / by
        x = jnp.where((i == k)[:, None], first, x)
        x = jnp.where((pair & (i == k + 1))[:, None], then, x)
        return jnp.where(second, b, x), divided

    def up(iteration, state):  # P^T L^-H
        b, second = state
        end = n - 1 - iteration
        k = jnp.where(pivots[end] < 0, end - 1, end)  # where the block starts
        pair, last, pivot, (left, right) = block(k)
        x = b - jnp.where((i == k)[:, None], other(left) @ b, 0)
        x = x - jnp.where((pair & (i == k + 1))[:, None], other(right) @ b, 0)
        x = swap(x, last, pivot)
        return jnp.where(second, b, x), pair & ~second

    no = jnp.zeros((), bool)
    b, _ = lax.fori_loop(0, n, down, (b, no))
    return lax.fori_loop(0, n, up, (b, no))[0]
