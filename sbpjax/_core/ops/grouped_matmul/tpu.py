"""Grouped matrix products on TPU: JAX's megablox (Pallas), for `_core.ops.grouped_matmul.primitive`.

The kernels take one sequence of rows that whole tiles make up, group by group from the first row: rows of zeros are
added after the last one. Blocks of a product in VMEM are 512 rows by 1,024 by 1,024 numbers of 16 bits, or half as
wide of 32 bits; smaller matrices have smaller ones.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from sbpjax._core.runtime.optional_packages import LazyModule

megablox = LazyModule("jax.experimental.pallas.ops.tpu.megablox.gmm")  # Pallas


_ROWS = 512


def _supports(x, y) -> bool:
    return str(x.dtype) in ("bfloat16", "float32") and min(x.size, y.size) > 0


def supports_matmul(x, w, transposed: bool) -> bool:
    """Return whether the kernel computes the products of rows ``(L, M, in)``."""
    return _supports(x, w)


def supports_outer(x, y) -> bool:
    """Return whether the kernel computes the sums of rows' products."""
    return _supports(x, y)


def _up(length: int, block: int = 128) -> int:
    return -(-length // block) * block


def _tiling(shape: tuple[int, ...], out: int, dtype) -> tuple[int, int, int]:
    rows, width = shape
    wide = 1024 if dtype.itemsize == 2 else 512
    return min(_ROWS, _up(rows)), min(wide, _up(width)), min(wide, _up(out))


def _pad_rows(x, block: int):
    return jnp.pad(x, ((0, _up(x.shape[0], block) - x.shape[0]), (0, 0)))


def matmul(x, w, sizes, *, transposed: bool, interpret: bool = False):
    """Return ``(M, out)`` of rows ``(M, in)`` in groups from the first row; rows after the last are unspecified.

    Args:
        x: rows.
        w: ``(E, in, out)``, or ``(E, out, in)`` if `transposed`.
        sizes: int32 ``(E,)``.
        transposed: whether the matrices are.
        interpret: run without a TPU.
    """
    with jax.enable_x64(False):
        tiling = _tiling(x.shape, w.shape[1 if transposed else 2], x.dtype)
        how: dict[str, Any] = {"preferred_element_type": x.dtype, "tiling": tiling, "interpret": interpret}
        return megablox.gmm(_pad_rows(x, tiling[0]), w, sizes, transpose_rhs=transposed, **how)[: x.shape[0]]


def outer(x, y, sizes, *, interpret: bool = False):
    """Return ``(E, in, out)``: of each group the sum of ``x[row]ᵀ y[row]``.

    Args:
        x: rows ``(M, in)``.
        y: rows ``(M, out)``.
        sizes: int32 ``(E,)``, from the first row on.
        interpret: run without a TPU.
    """
    with jax.enable_x64(False):
        tiling = _tiling(x.shape, y.shape[1], x.dtype)
        how: dict[str, Any] = {"preferred_element_type": x.dtype, "tiling": tiling, "interpret": interpret}
        return megablox.tgmm(_pad_rows(x, tiling[0]).T, _pad_rows(y, tiling[0]), sizes, **how)
