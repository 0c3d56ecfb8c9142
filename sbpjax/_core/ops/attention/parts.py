"""Attention over parts of the keys, and the combination of partial results (ring attention).

A query that reads keys 0 to 3 on one rank, with result `a` and lse `x`, and keys 4 to 7 on another, with `b` and `y`,
has the lse ``z = log(exp(x) + exp(y))`` and the result ``exp(x - z) a + exp(y - z) b``. Its gradient is a sum over the
parts, each computed with the result and the lse of the whole.

Where every key is read, whatever its number, a part is an equation of its own, so that the platform's kernel runs if it
takes the shapes; parts of a window are computed by `attention_blocks`, which knows the numbers of queries and keys.
Shapes and masks as there.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import lax

from ..promote import BOOL, compute_dtype
from . import blocks as attention_blocks
from .blocks import Part
from .primitive import attention_grad_p, attention_p
from .scores import EVERY_KEY, Scores, may_hide_all


def attend_part(q, k, v, mask, segments, how: Scores, kernel: str, part: Part):
    """Return the result of some queries and keys, and its lse, -inf with a result of 0 where no key is read.

    Args:
        q: ``(*lead, G, T, D)``.
        k: ``(*lead, S, D)``; zeros where they do not count.
        v: ``(*lead, S, Dv)``, likewise.
        mask: None, or the part's.
        segments: None, or the part's.
        how: how the scores are made.
        kernel: as in `attention_primitive.attention`.
        part: which part it is.

    Returns:
        ``(*lead, G, T, Dv)`` and ``(*lead, G, T)``, both in the wide dtype.
    """
    if how.window != EVERY_KEY:
        out, lse = attention_blocks.forward(q, k, v, mask, segments, how, part=part)
    else:
        out, lse = bind_attention(
            q, k, v, mask_padded_keys(mask, part.keys, q.ndim, k.shape[-2]), segments, how, kernel
        )
    return zero_empty_rows(out, lse)


def bind_attention(q, k, v, mask, segments, how: Scores, kernel: str):
    """Return attention and its lse as one equation, whose queries and keys are numbered from 0."""
    extras = (*(() if mask is None else (mask,)), *(segments or ()))
    return attention_p.bind(q, k, v, *extras, how=how, segmented=segments is not None, kernel=kernel, across=())


def gradients(q, k, v, mask, segments, how: Scores, kernel: str, part: Part, out, lse, ct, mask_grad: bool = False):
    """Return a part's contribution to the gradients of its queries, keys and values, and of its mask if `mask_grad`.

    Args:
        q: as in `attend_part`, like the next seven.
        k: keys.
        v: values.
        mask: mask.
        segments: segments.
        how: how the scores are made.
        kernel: which kernel.
        part: the position of the part.
        out: the result of all parts.
        lse: that of all parts; inf for queries that do not count.
        ct: the gradient of ``out``.
        mask_grad: whether the mask's gradient is wanted.
    """
    if how.window != EVERY_KEY or mask_grad:
        return attention_blocks.backward(q, k, v, mask, segments, how, out, lse, ct, mask_grad=mask_grad, part=part)
    return equation_grad(
        q, k, v, mask_padded_keys(mask, part.keys, q.ndim, k.shape[-2]), segments, how, kernel, out, lse, ct
    )


def equation_grad(q, k, v, mask, segments, how: Scores, kernel: str, out, lse, ct):
    """Return the gradients of queries, keys and values by one equation; see `bind_attention`."""
    extras = (*(() if mask is None else (mask,)), *(segments or ()))
    return attention_grad_p.bind(
        q, k, v, out, lse, *extras, ct,
        how=how, segmented=segments is not None, kernel=kernel, across=(), mask_grad=False,
    )  # fmt: skip


def mask_padded_keys(mask, count, rank: int, keys: int):
    """Return a mask that also hides the keys from number ``count`` on; None hides none.

    Args:
        mask: a mask or None.
        count: how many of the keys count.
        rank: of the mask.
        keys: how many there are.
    """
    if count is None:
        return mask
    own = (jnp.arange(keys, dtype=np.int32) < count).reshape((1,) * (rank - 1) + (keys,))
    if mask is None:
        return own
    return mask & own if mask.dtype == BOOL else jnp.where(own, mask, -np.inf)


def zero_empty_rows(out, lse):
    """Return a result and its lse in the wide dtype, 0 and -inf where no key was read."""
    wide = compute_dtype(out.dtype)
    empty = jnp.isinf(lse)
    return jnp.where(empty[..., None], 0, out.astype(wide)), jnp.where(empty, -np.inf, lse.astype(wide))


def join_parts(one, other):
    """Return the result and lse of two parts together, given those of each."""
    (a, x), (b, y) = one, other
    most = jnp.maximum(x, y)
    safe = jnp.where(most == -np.inf, 0, most)
    p, q = jnp.exp(x - safe), jnp.exp(y - safe)
    total = jnp.where(most == -np.inf, 1, p + q)
    return (a * p[..., None] + b * q[..., None]) / total[..., None], jnp.where(
        most == -np.inf, most, safe + jnp.log(total)
    )


def combine_across_ranks(out, lse, names: tuple[str, ...]):
    """Return the result and lse of the parts of all ranks on some axes together, on each of them."""
    most = lax.pmax(lse, names)
    safe = jnp.where(most == -np.inf, 0, most)
    p = jnp.exp(lse - safe)
    total = lax.psum(p, names)
    total = jnp.where(most == -np.inf, 1, total)
    return lax.psum(out * p[..., None], names) / total[..., None], jnp.where(
        most == -np.inf, most, safe + jnp.log(total)
    )


def finish_parts(out, lse, mask, segments, how: Scores, dtype):
    """Return a joined result and its lse as those of one equation: rows without any key are 0 and inf, or NaN."""
    empty = lse == -np.inf
    if may_hide_all(mask, segments, how):
        return out.astype(dtype), jnp.where(empty, np.inf, lse)
    return jnp.where(empty[..., None], np.nan, out).astype(dtype), lse
