"""fp8 linear layers: 8-bit products with per-tensor current scaling, for `amp` under ``"fp8"``.

Forward        y  = x  · wᵀ      e4m3 · e4m3    (3 bits of mantissa, up to 448)
Backward       dx = dy · w       e5m2 · e4m3    (2 bits of mantissa, up to 57,344: gradients spread wider)
               dw = dyᵀ · x      e5m2 · e4m3

Each tensor is scaled so that its largest magnitude becomes the largest number of its format, anew at each use
("current scaling"): no state is kept between steps. Products are summed in float32, and the scales divided
out of the sum. Under a split, the largest magnitude is that of the whole tensor, so values do not depend on layouts.

Formats and scaling as in Micikevicius et al., FP8 Formats for Deep Learning, arXiv:2209.05433.
"""

from __future__ import annotations

import jax
import ml_dtypes
import numpy as np
from jax import lax

from ..dims import fail, same_dtype

FORWARD, BACKWARD = np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(ml_dtypes.float8_e5m2)
# Units of fp8 take dims that are multiples of this.
MULTIPLE = 16


def scale_to_fp8(x, dtype: np.dtype):
    """Return x in an 8-bit format and the float32 number that times it gives x back.

    Args:
        x: floats of any shape.
        dtype: `FORWARD` or `BACKWARD`.
    """
    most = np.float32(ml_dtypes.finfo(dtype).max)
    wide = lax.convert_element_type(x, np.float32)
    largest = lax.reduce_max(lax.abs(wide), tuple(range(x.ndim)))
    # Any scale serves zeros. A value that is not finite stays so, in the scale.
    back = lax.select(lax.gt(largest, np.float32(0)), lax.div(largest, most), np.float32(1))
    # Rounding may lead beyond the largest number, which e4m3 has no infinity for.
    small = lax.clamp(-most, lax.div(wide, lax.broadcast(back, x.shape)), most)
    return lax.convert_element_type(small, dtype), back


def _product(a, b, dims, dtype):
    """Return the product of two `(8-bit tensor, scale)` over the given dims, in a dtype."""
    (x, back_x), (y, back_y) = a, b
    out = lax.dot_general(x, y, (dims, ((), ())), preferred_element_type=np.dtype(np.float32))
    return lax.convert_element_type(lax.mul(out, lax.broadcast(lax.mul(back_x, back_y), out.shape)), dtype)


@jax.custom_vjp
def _linear(x, weight):
    return _forward(x, weight)[0]


def _forward(x, weight):
    small_x, small_w = scale_to_fp8(x, FORWARD), scale_to_fp8(weight, FORWARD)
    out = _product(small_x, small_w, ((x.ndim - 1,), (1,)), x.dtype)
    return out, (small_x, small_w)


def _backward(kept, grad):
    small_x, small_w = kept
    small_g = scale_to_fp8(grad, BACKWARD)
    last, lead = grad.ndim - 1, tuple(range(grad.ndim - 1))
    return (
        _product(small_g, small_w, ((last,), (0,)), grad.dtype),
        _product(small_g, small_x, (lead, lead), grad.dtype),
    )


_linear.defvjp(_forward, _backward)


def linear_fp8(x, weight, bias=None, /):
    """Return x Wᵀ + b, with products of 8-bit floats and sums in float32.

    Args:
        x: ``(..., in)``, bfloat16 or float32, any sbp.
        weight: ``(out, in)`` of that dtype; ``split(0)`` splits the result, ``split(1)`` makes it a partial sum.
        bias: ``(out,)``.

    Returns:
        ``(..., out)`` in the dtype of ``x``.

    Raises:
        OpError: the last dims differ.
    """
    same_dtype("linear_fp8(x, weight, bias)", x, weight, bias)
    if x.ndim == 0 or weight.ndim != 2 or x.shape[-1] != weight.shape[-1]:
        fail(
            "shape",
            "linear_fp8(x, weight)",
            f"x {x.shape}, weight {weight.shape}",
            "x is (..., K) and weight (N, K)",
            f"a weight of shape (N, {x.shape[-1] if x.ndim else 1})",
        )
    out = _linear(x, weight)
    return out if bias is None else lax.add(out, lax.broadcast_in_dim(bias, out.shape, (out.ndim - 1,)))


def is_fp8_worthwhile(x_shape: tuple[int, ...], weight_shape: tuple[int, ...]) -> bool:
    """Return whether a linear layer gains from 8-bit floats.

    Dims must be multiples of 16. A layer with 8 times more outputs than inputs is the head of a vocabulary: its logits
    want more bits, and a graph computes its loss in chunks.

    Args:
        x_shape: ``(..., in)``.
        weight_shape: ``(out, in)``.
    """
    if len(weight_shape) != 2 or not x_shape:
        return False
    outs, ins = weight_shape
    rows = int(np.prod(x_shape[:-1], dtype=np.int64))
    return not (outs % MULTIPLE or ins % MULTIPLE or rows % MULTIPLE) and outs < 8 * ins
