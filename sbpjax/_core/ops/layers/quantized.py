"""Weight-only 8-bit quantization of linear layers: half the bytes of bfloat16 to store and to read per token."""

from __future__ import annotations

import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax

from ..dims import fail
from ..promote import cast


def quantize_rows(weight, /, dtype):
    """Return a weight in 8 bits, and the scale of each of its rows.

    Args:
        weight: ``(out, in)``, floats.
        dtype: ``int8``, rounded to the nearest of 255 steps, or ``float8_e4m3fn``.

    Returns:
        ``(out, in)`` of the dtype, and ``(out,)`` float32: a row is its numbers times its scale. A split of the second
        dim costs a reduction of the scales.
    """
    most = np.float32(127 if dtype == np.int8 else ml_dtypes.finfo(dtype).max)
    wide = cast(weight, np.dtype(np.float32))
    largest = lax.reduce_max(lax.abs(wide), (1,))
    scale = lax.select(lax.gt(largest, jnp.zeros_like(largest)), lax.div(largest, most), jnp.ones_like(largest))
    small = lax.clamp(-most, lax.div(wide, lax.broadcast_in_dim(scale, wide.shape, (0,))), most)
    if dtype == np.int8:
        small = lax.round(small, lax.RoundingMethod.TO_NEAREST_EVEN)
    return lax.convert_element_type(small, dtype), scale


def linear_quantized(x, weight, scale, bias=None, /):
    """Return x Wᵀ + b of a weight in 8 bits; compilers read the 8 bits and widen them inside the product.

    Args:
        x: ``(..., in)``, floats, any sbp.
        weight: ``(out, in)`` of 8 bits; ``split(0)`` splits the result, ``split(1)`` makes it a partial sum.
        scale: ``(out,)`` float32.
        bias: ``(out,)`` in the dtype of ``x``.

    Returns:
        ``(..., out)`` in the dtype of ``x``.

    Raises:
        OpError: the last dims differ.
    """
    if x.ndim == 0 or x.shape[-1] != weight.shape[-1]:
        fail(
            "shape",
            "linear_quantized(x, weight)",
            f"x {x.shape}, weight {weight.shape}",
            "x is (..., K) and weight (N, K)",
            f"x of shape (..., {weight.shape[-1]})",
        )
    out = lax.dot_general(x, lax.convert_element_type(weight, x.dtype), (((x.ndim - 1,), (1,)), ((), ())))
    last = (out.ndim - 1,)
    out = lax.mul(out, lax.broadcast_in_dim(cast(scale, out.dtype), out.shape, last))
    return out if bias is None else lax.add(out, lax.broadcast_in_dim(cast(bias, out.dtype), out.shape, last))
