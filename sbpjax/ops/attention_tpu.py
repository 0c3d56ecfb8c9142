"""Attention on TPU: JAX's splash attention, a Pallas kernel, in the terms of `sbpjax.ops.attention_primitive`.

The kernel takes lengths that whole blocks make up, so 1,000 queries and keys become 1,024: the padded keys are another
segment, which no query reads, and the padded rows are cut off behind it. A mask of keys alone, ``(..., 1, 1, S)``, is
such a segment too; other masks stay with `sbpjax.ops.attention_blocks`.

Forward and backward are called one by one, for which jax 0.10 has no public function: the backward is the one that its
`custom_vjp` calls.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .promote import BOOL, compute_dtype

NAME = "splash"
_BLOCK = 512


def takes(q, k, v, mask, causal: bool) -> bool:
    """Return whether the kernel computes this."""
    of_keys = mask is None or (mask.dtype == BOOL and mask.shape[-3:-1] == (1, 1) and mask.shape[-1] > 1)
    return str(q.dtype) in ("bfloat16", "float32") and of_keys and min(q.size, k.size, v.size) > 0


def _block(length: int) -> int:
    """Return the size of blocks: the largest that pads a length by at most an eighth."""
    return next(b for b in (_BLOCK, 256, 128) if b == 128 or -(-length // b) * b <= 1.125 * length)


def _up(length: int) -> int:
    return -(-length // _block(length)) * _block(length)


class _Call:
    """The kernels of one problem, and its operands as these take them: ``(N, G, T, D)`` and ``(N, S, D)``."""

    def __init__(self, q, k, v, mask, scale: float, causal: bool, interpret: bool) -> None:
        from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel as splash
        from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks

        self.splash = splash
        self.groups, self.rows, self.keys = q.shape[-3], q.shape[-2], k.shape[-2]
        self.count = math.prod(q.shape[:-3])
        self.interpret = interpret
        rows, keys = _up(self.rows), _up(self.keys)
        bq, bk = _block(self.rows), _block(self.keys)
        self.sizes = splash.BlockSizes(
            block_q=bq, block_kv=bk, block_kv_compute=bk,
            block_q_dkv=bq, block_kv_dkv=bk, block_kv_dkv_compute=bk, block_q_dq=bq, block_kv_dq=bk,
        )  # fmt: skip
        one = (masks.CausalMask if causal else masks.FullMask)((rows, keys))
        self.kernel = splash.make_splash_mqa(
            masks.MultiHeadMask([one] * self.groups), block_sizes=self.sizes, save_residuals=True,
            head_shards=1, q_seq_shards=1, interpret=interpret,
        )  # fmt: skip
        scaled = (q.astype(compute_dtype(q.dtype)) * np.asarray(scale, compute_dtype(q.dtype))).astype(q.dtype)
        self.q, self.k, self.v = self.of_rows(scaled), self.of_keys(k), self.of_keys(v)
        self.any_key: Any = None
        self.segments: Any = None
        seen = jnp.arange(keys, dtype=np.int32) < self.keys
        if mask is not None:
            own = jnp.broadcast_to(mask, (*q.shape[:-3], 1, 1, self.keys)).reshape(self.count, self.keys)
            self.any_key = own.any(-1)[:, None, None]
            seen = jnp.pad(own, ((0, 0), (0, keys - self.keys)))
        if mask is not None or (keys > self.keys and not (causal and self.rows <= self.keys)):
            seen = jnp.broadcast_to(seen, (self.count, keys))
            self.segments = splash.SegmentIds(jnp.ones((self.count, rows), np.int32), seen.astype(np.int32))

    def of_rows(self, x):
        """Return ``(*lead, G, T, ...)`` as ``(N, G, T, ...)`` with the rows padded."""
        x = x.reshape(self.count, self.groups, *x.shape[-2:]) if x.ndim > 2 else x
        return jnp.pad(x, ((0, 0), (0, 0), (0, _up(self.rows) - self.rows), (0, 0)))

    def of_keys(self, x):
        """Return ``(*lead, S, D)`` as ``(N, S, D)`` with the rows padded."""
        return jnp.pad(x.reshape(self.count, *x.shape[-2:]), ((0, 0), (0, _up(self.keys) - self.keys), (0, 0)))


def forward(q, k, v, mask, *, scale: float, causal: bool, interpret: bool = False):
    """Return attention and its lse, as `sbpjax.ops.attention_blocks.forward`."""
    with jax.enable_x64(False):
        call = _Call(q, k, v, mask, scale, causal, interpret)
        segments = None if call.segments is None else 0
        run = jax.vmap(call.kernel, in_axes=(0, 0, 0, segments))
        out, (lse,) = run(call.q, call.k, call.v, call.segments)
        if call.any_key is not None:
            out, lse = jnp.where(call.any_key[..., None], out, 0), jnp.where(call.any_key, lse, np.inf)
        out = out[:, :, : call.rows].reshape(*q.shape[:-1], v.shape[-1])
        return out, lse[:, :, : call.rows].reshape(q.shape[:-1])


def backward(q, k, v, mask, out, lse, ct, *, scale: float, causal: bool, interpret: bool = False):
    """Return the gradients of queries, keys and values, as `sbpjax.ops.attention_blocks.backward`."""
    with jax.enable_x64(False):
        call = _Call(q, k, v, mask, scale, causal, interpret)
        made, sizes = call.kernel, call.sizes
        lse = call.of_rows(lse.reshape(*lse.shape, 1))[..., 0]

        def run(q, k, v, segments, out, lse, ct):
            kept = (q, k, v, segments, None, out, lse, made.dq_mask_info, made.dkv_mask_info)
            value, function = made.kwargs["mask_value"], made.kwargs["mask_function"]
            return call.splash._splash_attention_bwd(
                False, value, True, sizes, None, function, None, interpret, kept, ct
            )[3:6]

        run = jax.vmap(run, in_axes=(0, 0, 0, None if call.segments is None else 0, 0, 0, 0))
        dq, dk, dv = run(call.q, call.k, call.v, call.segments, call.of_rows(out), lse, call.of_rows(ct))
        wide = compute_dtype(q.dtype)
        dq = (dq.astype(wide) * np.asarray(scale, wide)).astype(q.dtype)[:, :, : call.rows]
        return dq.reshape(q.shape), dk[:, : call.keys].reshape(k.shape), dv[:, : call.keys].reshape(v.shape)
