"""Attention on NVIDIA's GPUs: cuDNN's kernels, in the terms of `sbpjax.ops.attention_primitive`.

cuDNN takes 16-bit floats, equal widths of keys and values up to 128, and here no mask but the causal one; what it does
not take stays with `sbpjax.ops.attention_blocks`. `jax.nn.dot_product_attention` calls the same kernels, but has no
backward of its own to call (jax 0.10), so that they are bound one by one.
"""

from __future__ import annotations

import math

import jax.numpy as jnp

NAME = "cudnn"


def takes(q, k, v, mask, causal: bool) -> bool:
    """Return whether the kernel computes this."""
    width = q.shape[-1]
    fits = width == v.shape[-1] and width % 8 == 0 and width <= 128 and min(q.size, k.size) > 0
    square = not causal or q.shape[-2] == k.shape[-2]
    return str(q.dtype) in ("bfloat16", "float16") and mask is None and fits and square


def _static(scale: float, causal: bool) -> dict:
    from jax._src.cudnn import fused_attention_stablehlo as cudnn

    mask = cudnn.MaskType.CAUSAL if causal else cudnn.MaskType.NO_MASK
    return {
        "scale": scale, "seed": 42, "dropout_rate": 0.0, "variadic_args": (False, False), "mask_type": mask,
        "layout": cudnn.AttentionLayout.BNTH.value, "sliding_window_length": None,
    }  # fmt: skip


def _heads(x, rank: int):
    """Return ``(*lead, G, T, D)`` or ``(*lead, S, D)`` as ``(batch, heads, rows, D)``; keys have ``rank`` dims."""
    lead = x.shape[: max(rank - 3, 0)]
    return x.reshape(math.prod(lead), -1, *x.shape[-2:])


def forward(q, k, v, mask, *, scale: float, causal: bool):
    """Return attention and its lse, as `sbpjax.ops.attention_blocks.forward`."""
    from jax._src.cudnn import fused_attention_stablehlo as cudnn

    absent = (jnp.zeros(0, q.dtype),) * 7
    operands = [_heads(x, k.ndim) for x in (q, k, v)]
    out, lse = cudnn._dot_product_attention_fwd_p_wrapper.bind(
        *operands, *absent, **_static(scale, causal), is_training=True
    )
    return out.reshape(q.shape), lse.reshape(q.shape[:-1])


def backward(q, k, v, mask, out, lse, ct, *, scale: float, causal: bool):
    """Return the gradients of queries, keys and values, as `sbpjax.ops.attention_blocks.backward`."""
    from jax._src.cudnn import fused_attention_stablehlo as cudnn

    absent = (jnp.zeros(0, q.dtype),) * 7
    *operands, out, ct = (_heads(x, k.ndim) for x in (q, k, v, out, ct))
    stats = lse.reshape(operands[0].shape[:-1])
    grads = cudnn._dot_product_attention_bwd_p_wrapper.bind(
        *operands, *absent, stats, out, ct, **_static(scale, causal)
    )
    return tuple(g.reshape(x.shape) for g, x in zip(grads, (q, k, v), strict=True))
