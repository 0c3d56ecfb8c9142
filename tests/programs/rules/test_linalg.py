"""Every row of decompositions, solves and Fourier transforms, by brute force."""

import functools

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.lax import linalg

from tests.programs.rules.strategy_checker import MESHES, check, equations

_RNG = np.random.default_rng(7)


def _x(*shape, dtype=np.float64):
    return _RNG.standard_normal(shape).astype(dtype)


def _definite(*shape):
    x = _x(*shape)
    return x @ x.swapaxes(-1, -2) + 3 * np.eye(shape[-1])


@functools.cache
def _cases():
    batch = (4, 3)
    square, spd, tall = _x(*batch, 3, 3), _definite(*batch, 3, 3), _x(5, 4, 2)
    lower = np.tril(spd)
    found = equations("cholesky", linalg.cholesky, spd)
    found += equations("lu", linalg.lu, square)
    found += equations("lu of tall", linalg.lu, tall)
    found += equations("qr", jnp.linalg.qr, tall)
    found += equations("eigh", jnp.linalg.eigh, _definite(5, 3, 3))
    found += equations("eigvalsh", jnp.linalg.eigvalsh, spd)
    found += equations("eig", linalg.eig, _x(3, 2, 2))
    found += equations("svd", functools.partial(jnp.linalg.svd, full_matrices=False), tall)
    found += equations("singular values", functools.partial(jnp.linalg.svd, compute_uv=False), tall)
    found += equations("schur", linalg.schur, _x(3, 2, 2))
    found += equations("hessenberg", linalg.hessenberg, _x(5, 3, 3))
    found += equations("tridiagonal", linalg.tridiagonal, spd)
    found += equations("symmetric product", linalg.symmetric_product, tall, _definite(5, 4, 4))
    for left, transpose in ((True, False), (False, True)):
        solve = functools.partial(linalg.triangular_solve, left_side=left, lower=True, transpose_a=transpose)
        right = _x(*batch, 3, 5) if left else _x(*batch, 5, 3)
        found += equations("triangular solve", solve, lower, right)
    diagonals = _x(5, 4) / 9, _x(5, 4) + 4, _x(5, 4) / 9
    found += equations("tridiagonal solve", linalg.tridiagonal_solve, *diagonals, _x(5, 4, 3))
    for kind, lengths in (("FFT", (6,)), ("IFFT", (5, 6))):
        transform = functools.partial(lax.fft, fft_type=kind, fft_lengths=lengths)
        found += equations(kind, transform, _x(4, 5, 6) + 1j * _x(4, 5, 6))
    found += equations("RFFT", functools.partial(jnp.fft.rfft, axis=-1), _x(4, 5, 6))
    found += equations("IRFFT", functools.partial(jnp.fft.irfft, axis=-1), _x(4, 5, 4) + 0j)
    kept = {f.eqn.primitive.name for f in found} - {"sort", "gather", "dot_general"}
    return [f for f in found if f.eqn.primitive.name in kept]


@pytest.mark.parametrize("mesh", MESHES)
def test_linalg(mesh):
    assert check(_cases(), mesh) > 60
