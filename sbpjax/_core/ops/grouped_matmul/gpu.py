"""Grouped matrix products on NVIDIA Hopper: JAX's ragged_dot_mgpu kernels.

The kernels, for `_core.ops.grouped_matmul.primitive`, take 16-bit floats whose widths are whole blocks; the rest
uses `_core.ops.grouped_matmul.grouped_matmul`. The kernel of the sums of a group's rows reads the number of the
device's cores, so it needs one (jax 0.10).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from sbpjax._core.runtime.optional_packages import LazyModule

forward = LazyModule("jax.experimental.pallas.ops.gpu.ragged_dot_mgpu")  # Pallas
backward = LazyModule("jax.experimental.pallas.ops.gpu.transposed_ragged_dot_mgpu")  # likewise


_BLOCK = 128
_DEPTH = 64  # of the sum in one step of a product
_LOADS = 4  # blocks on their way from memory
_HOPPER = ("9.0", "9.0a")


def _supports(x, *widths: int) -> bool:
    fits = all(n % _BLOCK == 0 and n for n in widths)
    return str(x.dtype) in ("bfloat16", "float16") and fits and x.size > 0


def supports_matmul(x, w, transposed: bool) -> bool:
    """Return whether the kernel computes the products of rows ``(L, M, in)``."""
    return _supports(x, *w.shape[1:]) and _is_hopper()


def supports_outer(x, y) -> bool:
    """Return whether the kernel computes the sums of rows' products."""
    return _supports(x, x.shape[-1], y.shape[-1]) and _is_hopper() and hasattr(jax.devices()[0], "core_count")


def _is_hopper() -> bool:
    """Return whether the program is for Hopper; assumed for ahead-of-time compilation without a GPU."""
    try:
        return getattr(jax.devices("gpu")[0], "compute_capability", None) in _HOPPER
    except RuntimeError:
        return True


def matmul(x, w, sizes, *, transposed: bool):
    """Return ``(M, out)``, as `_core.ops.grouped_matmul.tpu.matmul`."""
    with jax.enable_x64(False):
        return forward.ragged_dot(
            x, w, group_sizes=sizes, transpose_rhs=transposed, block_m=_BLOCK, block_n=_BLOCK, block_k=_DEPTH,
            max_concurrent_steps=_LOADS, grid_block_n=1,
        )  # fmt: skip


def outer(x, y, sizes):
    """Return ``(E, in, out)``, as `_core.ops.grouped_matmul.tpu.outer`."""
    # Rows of another group in a block are multiplied with zero: they must be numbers.
    own = (jnp.arange(x.shape[0], dtype=sizes.dtype) < sizes.sum(dtype=sizes.dtype))[:, None]
    x, y = jnp.where(own, x, 0), jnp.where(own, y, 0)
    with jax.enable_x64(False):
        return backward.transposed_ragged_dot(
            x, y, group_sizes=sizes, block_m=_BLOCK, block_n=_BLOCK, block_k=_DEPTH,
            max_concurrent_steps=_LOADS, grid_block_n=1,
        )  # fmt: skip
