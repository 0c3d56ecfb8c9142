"""Attention kernels of cuDNN for NVIDIA GPUs, for `_core.ops.attention.primitive`.

cuDNN takes 16-bit floats, equal widths of keys and values up to 128, and no mask but windows that end at the query,
such as the causal one; other inputs use `_core.ops.attention.blocks`. `jax.nn.dot_product_attention`
calls the same kernels, but has no backward of its own to call (jax 0.10), so that they are bound one by one.
"""

from __future__ import annotations

import math

import jax.numpy as jnp

from sbpjax._core.jax_private import cudnn_attention

from .scores import EVERY_KEY, Scores

NAME = "cudnn"


def unsupported_reason(q, k, v, mask, segments, how: Scores) -> str | None:
    """Return why the kernel does not compute this; None if it does."""
    width, (_, right) = q.shape[-1], how.window
    reasons = {
        f"takes 16-bit floats, not {q.dtype}": str(q.dtype) not in ("bfloat16", "float16"),
        "takes no mask here": mask is not None,
        "takes lengths of sequences, no segment ids": segments is not None,
        "has no soft cap": how.soft_cap is not None,
        "takes heads of keys and values with equal sizes that are multiples of 8 up to 128": width != v.shape[-1]
        or width % 8 != 0
        or width > 128,
        "takes windows that end at the query": right != 0 and how.window != EVERY_KEY,
        "takes windows of as many queries as keys": how.window != EVERY_KEY and q.shape[-2] != k.shape[-2],
        "takes no empty arrays": min(q.size, k.size) == 0,
    }
    return next((f"cuDNN {reason}" for reason, holds in reasons.items() if holds), None)


def _static(how: Scores) -> dict:
    left, right = how.window
    return {
        "scale": how.scale, "seed": 42, "dropout_rate": 0.0, "variadic_args": (False, False),
        "mask_type": cudnn_attention.MaskType.NO_MASK if right is None else cudnn_attention.MaskType.CAUSAL,
        "layout": cudnn_attention.AttentionLayout.BTNH.value,
        "sliding_window_length": None if left is None else left + 1,  # cuDNN counts the query's own key
    }  # fmt: skip


def _heads(x, rank: int):
    """Return ``(*lead, G, T, D)`` or ``(*lead, S, D)`` as ``(batch, rows, heads, D)``; keys have ``rank`` dims.

    A layer makes its heads as ``(batch, rows, heads, D)`` and transposes them; here they are transposed back, and XLA
    leaves out both.
    """
    lead = x.shape[: max(rank - 3, 0)]
    return x.reshape(math.prod(lead), -1, *x.shape[-2:]).swapaxes(1, 2)


def _back(x, like):
    """Return ``(batch, rows, heads, D)`` in the shape of an operand before `_heads`."""
    return x.swapaxes(1, 2).reshape(like.shape)


def forward(q, k, v, mask, segments, how: Scores):
    """Return attention and its lse, as `_core.ops.attention.blocks.forward`."""
    absent = (jnp.zeros(0, q.dtype),) * 7
    operands = [_heads(x, k.ndim) for x in (q, k, v)]
    out, lse = cudnn_attention._dot_product_attention_fwd_p_wrapper.bind(
        *operands, *absent, **_static(how), is_training=True
    )
    return _back(out, q), lse.reshape(q.shape[:-1])


def backward(q, k, v, mask, segments, how: Scores, out, lse, ct):
    """Return the gradients of queries, keys and values, as `_core.ops.attention.blocks.backward`."""
    absent = (jnp.zeros(0, q.dtype),) * 7
    *operands, out, ct = (_heads(x, k.ndim) for x in (q, k, v, out, ct))
    batch, rows, heads, _ = operands[0].shape
    stats = lse.reshape(batch, heads, rows)
    grads = cudnn_attention._dot_product_attention_bwd_p_wrapper.bind(
        *operands, *absent, stats, out, ct, **_static(how)
    )
    return tuple(_back(g, x) for g, x in zip(grads, (q, k, v), strict=True))
