"""OneFlow's fused attention ops as compositions that XLA fuses: bias, scale, mask, softmax and dropout.

Worked case: ``scale_mask_softmax(x, mask, fill_value=-1e4, scale=0.5)`` is the softmax over the last dim of x / 2 where
the mask holds and of -10000 elsewhere; `..._dropout` forms return it after dropout and the softmax
itself, as OneFlow's do.
"""

from __future__ import annotations

import numpy as np
from jax import lax

from ..arithmetic import add
from ..dims import fail, shape_text
from ..layers import activation as functions
from ..layers.activation import gelu, softmax
from ..linalg.matrix import _offsets
from ..linalg.products import linear
from ..promote import broadcast_to, cast, joint_shape
from ..randoms.random import dropout


def bias_add(x, bias, /, axis: int = 1):
    """Return x + bias, with the vector along dim ``axis``."""
    axis = axis % x.ndim
    if bias.shape != (x.shape[axis],):
        sizes = f"The size of tensor x {shape_text(x.shape)} must match the size of tensor b {shape_text(bias.shape)}"
        rule = f"{sizes} at dimension {axis}"
        fail("shape", f"bias_add(axis={axis})", f"x {x.shape}, bias {bias.shape}", rule, "choose axis")
    shape = tuple(n if d == axis else 1 for d, n in enumerate(x.shape))
    return add(x, lax.broadcast_in_dim(bias, shape, (axis,)))


def bias_add_gelu(x, bias, /, axis: int):
    """Return gelu(x + bias)."""
    return gelu(bias_add(x, bias, axis))


def bias_add_dropout(x, bias, key, /, p: float, axis: int):
    """Return x + bias with elements dropped."""
    return dropout(key, bias_add(x, bias, axis), p=p)


def fast_gelu_mul(x, multiplier, /):
    """Return gelu(x) (its tanh approximation) times another tensor."""
    return lax.mul(gelu(x, approximate="tanh"), multiplier)


def scale_mask_softmax(x, mask, /, fill_value: float = 0.0, scale: float = 1.0):
    """Return the softmax over the last dim of ``scale * x`` where the mask holds, of ``fill_value`` elsewhere."""
    scaled = lax.mul(x, cast(scale, x.dtype))
    kept = broadcast_to(cast(mask, np.bool_), joint_shape(x.shape, mask.shape))
    filled = broadcast_to(cast(fill_value, x.dtype), kept.shape)
    return softmax(lax.select_n(kept, filled, broadcast_to(scaled, kept.shape)), dim=-1)


def scale_mask_softmax_dropout(x, mask, key=None, /, fill_value: float = 0.0, scale: float = 1.0, p: float = 0.5):
    """Return `scale_mask_softmax` after dropout (if a key is given), and before."""
    weights = scale_mask_softmax(x, mask, fill_value=fill_value, scale=scale)
    return (weights if key is None else dropout(key, weights, p=p)), weights


def bias_add_scale_mask_softmax_dropout(
    x, bias, mask, key=None, /, fill_value: float = 0.0, scale: float = 1.0, p: float = 0.5
):
    """Return `scale_mask_softmax_dropout` of x + bias."""
    return scale_mask_softmax_dropout(add(x, bias), mask, key, fill_value=fill_value, scale=scale, p=p)


def scale_tril_softmax_mask_scale(
    x, key=None, /, p: float = 0.5, diagonal: int = 0, tril_scale_value: float = 1.0, tril_fill_value: float = 0.0
):
    """Return the softmax of the scaled lower triangle after dropout (if a key is given), and before."""
    keep = lax.le(_offsets(x.shape, x.ndim - 2, x.ndim - 1), np.int32(diagonal))
    scaled = lax.mul(x, cast(tril_scale_value, x.dtype))
    weights = softmax(lax.select_n(keep, broadcast_to(cast(tril_fill_value, x.dtype), x.shape), scaled), dim=-1)
    return (weights if key is None else dropout(key, weights, p=p)), weights


def scale_tril(x, /, diagonal: int = 0, fill_value: float = 0.0, scale: float = 1.0):
    """Return the lower triangle times a scale, and ``fill_value`` above it."""
    keep = lax.le(_offsets(x.shape, x.ndim - 2, x.ndim - 1), np.int32(diagonal))
    scaled = lax.mul(x, cast(scale, x.dtype))
    return lax.select_n(keep, broadcast_to(cast(fill_value, x.dtype), x.shape), scaled)


def self_attention(x, /, head_size: int, alpha: float):
    """Return the scaled scores and the values of ``(T, B, heads * 3 * head_size)``, q, k and v side by side per head.

    Returns:
        ``(B, heads, T, T)`` and ``(B, heads, T, head_size)``.
    """
    if x.ndim != 3 or x.shape[-1] % (3 * head_size):
        rule = f"x is (T, B, heads * 3 * {head_size})"
        fail("shape", f"fused_self_attention(head_size={head_size})", f"x {x.shape}", rule, "choose head_size")
    t, b, width = x.shape
    parts = lax.reshape(x, (t, b, width // (3 * head_size), 3, head_size))
    q, k, v = (lax.squeeze(lax.slice_in_dim(parts, i, i + 1, axis=3), (3,)) for i in range(3))  # (T, B, H, D)
    scores = lax.dot_general(q, k, (((3,), (3,)), ((1, 2), (1, 2))))  # (B, H, T, T)
    return lax.mul(scores, cast(alpha, x.dtype)), lax.transpose(v, (1, 2, 0, 3))


def glu(x, w, b=None, v=None, c=None, /, activation: str = "none"):
    """Return ``(x w^T + b)`` times the activation of ``x v^T + c``; w holds both matrices if v is None."""
    first = linear(x, w, b)
    if v is None:
        half = first.shape[-1] // 2
        first, second = first[..., :half], first[..., half:]
    else:
        second = linear(x, v, c)
    gate = {"none": lambda y: y, "fast_gelu": lambda y: gelu(y, approximate="tanh")}.get(activation)
    gate = getattr(functions, activation, None) if gate is None else gate
    if gate is None:
        rule = "activation is none, sigmoid, relu, gelu, fast_gelu or silu"
        fail("value", f"fused_glu(activation={activation!r})", repr(activation), rule, 'activation="silu"')
    return lax.mul(first, gate(second))
