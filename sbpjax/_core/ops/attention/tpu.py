"""Attention kernel for TPU: JAX's splash attention (Pallas), for `_core.ops.attention.primitive`.

The kernel takes lengths that whole blocks make up, so 1,000 queries and keys become 1,024: the padded keys are another
segment, which no query reads, and the padded rows are cut off afterwards. Keys that a mask of keys alone,
``(..., 1, 1, S)``, hides are of that segment too; other masks stay with `_core.ops.attention.blocks`.

Forward and backward are called one by one, for which jax 0.10 has no public function: the backward is the one that its
`custom_vjp` calls.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sbpjax._core.runtime.optional_packages import LazyModule

from ..promote import BOOL, compute_dtype
from .scores import CAUSAL, EVERY_KEY, Scores, may_hide_all

splash = LazyModule("jax.experimental.pallas.ops.tpu.splash_attention.splash_attention_kernel")  # Pallas
masks = LazyModule("jax.experimental.pallas.ops.tpu.splash_attention.splash_attention_mask")  # likewise


NAME = "splash"
_BLOCK = 512


def unsupported_reason(q, k, v, mask, segments, how: Scores) -> str | None:
    """Return why the kernel does not compute this; None if it does."""
    pad_keys = mask is None or (mask.dtype == BOOL and mask.shape[-3:-1] == (1, 1) and mask.shape[-1] > 1)
    reasons = {
        f"takes bfloat16 and float32, not {q.dtype}": str(q.dtype) not in ("bfloat16", "float32"),
        "takes masks of bools for keys, alike for all queries": not pad_keys,
        "takes no empty arrays": min(q.size, k.size, v.size) == 0,
    }
    return next((f"splash attention {reason}" for reason, holds in reasons.items() if holds), None)


def _block(length: int) -> int:
    """Return the size of blocks: the largest that pads a length by at most an eighth."""
    return next(b for b in (_BLOCK, 256, 128) if b == 128 or -(-length // b) * b <= 1.125 * length)


def _up(length: int) -> int:
    return -(-length // _block(length)) * _block(length)


class _Call:
    """The kernels of one problem, and its operands as these take them: ``(N, G, T, D)`` and ``(N, S, D)``."""

    def __init__(self, q, k, v, mask, segments, how: Scores, interpret: bool) -> None:
        self.how, self.interpret = how, interpret
        self.groups, self.rows, self.keys = q.shape[-3], q.shape[-2], k.shape[-2]
        self.count = math.prod(q.shape[:-3])
        shape = rows, keys = _up(self.rows), _up(self.keys)
        bq, bk = _block(self.rows), _block(self.keys)
        self.sizes = splash.BlockSizes(
            block_q=bq, block_kv=bk, block_kv_compute=bk,
            block_q_dkv=bq, block_kv_dkv=bk, block_kv_dkv_compute=bk, block_q_dq=bq, block_kv_dq=bk,
        )  # fmt: skip
        if how.window in (EVERY_KEY, CAUSAL):
            one = (masks.CausalMask if how.window == CAUSAL else masks.FullMask)(shape)
        else:
            one = masks.LocalMask(shape, how.window, 0)
        self.kernel = splash.make_splash_mqa(
            masks.MultiHeadMask([one] * self.groups), block_sizes=self.sizes, save_residuals=True,
            head_shards=1, q_seq_shards=1, interpret=interpret, attn_logits_soft_cap=how.soft_cap,
        )  # fmt: skip
        scaled = (q.astype(compute_dtype(q.dtype)) * np.asarray(how.scale, compute_dtype(q.dtype))).astype(q.dtype)
        self.q, self.k, self.v = self.pad_rows(scaled), self.pad_keys(k), self.pad_keys(v)
        self.may_be_empty = may_hide_all(mask, segments, how)
        right = how.window[1]
        padding_is_hidden = keys == self.keys or (right is not None and self.rows + right <= self.keys)
        self.segments: Any = None
        if mask is not None or segments is not None or not padding_is_hidden:
            self.segments = self._segments(q.shape[:-3], mask, segments, rows, keys)

    def _segments(self, lead, mask, segments, rows: int, keys: int):
        """Return segments ``(N, rows)`` and ``(N, keys)`` that hide masked and padded keys from all queries."""
        pad_rows, pad_keys = segments or (jnp.ones(1, np.int32),) * 2
        pad_rows, pad_keys = (
            jnp.broadcast_to(x, (*lead, n)).reshape(self.count, n)
            for x, n in ((pad_rows, self.rows), (pad_keys, self.keys))
        )
        nobody = pad_rows.max() + 1
        if mask is not None:
            own = jnp.broadcast_to(mask, (*lead, 1, 1, self.keys)).reshape(self.count, self.keys)
            pad_keys = jnp.where(own, pad_keys, nobody)
        more = jnp.broadcast_to(nobody, (self.count, keys - self.keys))
        pad_rows = jnp.pad(pad_rows, ((0, 0), (0, rows - self.rows)), mode="edge")
        return splash.SegmentIds(pad_rows, jnp.concatenate([pad_keys, more], 1))

    def pad_rows(self, x):
        """Return ``(*lead, G, T, ...)`` as ``(N, G, T, ...)`` with the rows padded."""
        x = x.reshape(self.count, self.groups, *x.shape[-2:]) if x.ndim > 2 else x
        return jnp.pad(x, ((0, 0), (0, 0), (0, _up(self.rows) - self.rows), (0, 0)))

    def pad_keys(self, x):
        """Return ``(*lead, S, D)`` as ``(N, S, D)`` with the rows padded."""
        return jnp.pad(x.reshape(self.count, *x.shape[-2:]), ((0, 0), (0, _up(self.keys) - self.keys), (0, 0)))


def forward(q, k, v, mask, segments, how: Scores, *, interpret: bool = False):
    """Return attention and its lse, as `_core.ops.attention.blocks.forward`."""
    with jax.enable_x64(False):
        call = _Call(q, k, v, mask, segments, how, interpret)
        run = jax.vmap(call.kernel, in_axes=(0, 0, 0, None if call.segments is None else 0))
        out, (lse,) = run(call.q, call.k, call.v, call.segments)
        if call.may_be_empty:
            # A row without any key has the lse of the kernel's value for hidden scores, or of none at all.
            empty = lse < call.kernel.kwargs["mask_value"] / 2
            out, lse = jnp.where(empty[..., None], 0, out), jnp.where(empty, np.inf, lse)
        out = out[:, :, : call.rows].reshape(*q.shape[:-1], v.shape[-1])
        return out, lse[:, :, : call.rows].reshape(q.shape[:-1])


def backward(q, k, v, mask, segments, how: Scores, out, lse, ct, *, interpret: bool = False):
    """Return the gradients of queries, keys and values, as `_core.ops.attention.blocks.backward`."""
    with jax.enable_x64(False):
        call = _Call(q, k, v, mask, segments, how, interpret)
        made, sizes = call.kernel, call.sizes
        lse = call.pad_rows(lse.reshape(*lse.shape, 1))[..., 0]

        def run(q, k, v, segments, out, lse, ct):
            kept = (q, k, v, segments, None, out, lse, made.dq_mask_info, made.dkv_mask_info)
            value, function = made.kwargs["mask_value"], made.kwargs["mask_function"]
            return splash._splash_attention_bwd(
                False, value, True, sizes, None, function, how.soft_cap, interpret, kept, ct
            )[3:6]

        run = jax.vmap(run, in_axes=(0, 0, 0, None if call.segments is None else 0, 0, 0, 0))
        dq, dk, dv = run(call.q, call.k, call.v, call.segments, call.pad_rows(out), lse, call.pad_rows(ct))
        wide = compute_dtype(q.dtype)
        dq = (dq.astype(wide) * np.asarray(how.scale, wide)).astype(q.dtype)[:, :, : call.rows]
        return dq.reshape(q.shape), dk[:, : call.keys].reshape(k.shape), dv[:, : call.keys].reshape(v.shape)
