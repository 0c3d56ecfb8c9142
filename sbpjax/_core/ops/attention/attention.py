"""Scaled dot-product attention: softmax(q kᵀ · scale + mask) v.

Worked case: q (B, H, T, D), k and v (B, Hk, S, D) with Hk dividing H: query head h reads key head ``h // (H / Hk)``.
The queries are viewed as (B, Hk, H / Hk, T, D), so keys and values are never repeated. Two contractions and one
softmax: splits of B and of the heads pass straight through.

This is the *composition*, which stores all T × S scores. From `LONG` queries and keys on, one primitive replaces it,
which stores a block of them at a time (`_core.ops.attention.primitive`). With dropout it is always the composition: a
kernel would draw other numbers on each platform.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
from jax import lax

from ..dims import fail
from ..layers.activation import softmax, softmax_where
from ..promote import BOOL, broadcast_to, cast, compute_dtype, joint_shape
from ..randoms.random import dropout
from .primitive import attention
from .scores import EVERY_KEY, Scores, Window, in_window, may_hide_all

LONG = 512 * 512  # scores per head; below, the composition is faster on a CPU (`benchmarks/attention.py --crossover`)
_IMPLEMENTATIONS = ("auto", "plain", "kernel", "blocks", "splash", "cudnn")


def scaled_dot_product_attention(
    query,
    key,
    value,
    attn_mask=None,
    dropout_key=None,
    query_segments=None,
    key_segments=None,
    /,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    window_size: int | tuple[int | None, int | None] | None = None,
    soft_cap: float | None = None,
    implementation: str = "auto",
    across: tuple[str, ...] = (),
    head_parts: int = 1,
):
    """Return the attention of queries to keys, applied to values.

    Args:
        query: ``(..., H, T, D)``.
        key: ``(..., Hk, S, D)``.
        value: ``(..., Hk, S, Dv)``.
        attn_mask: None, bools (True takes part) or floats (added), broadcast to ``(..., H, T, S)``.
        dropout_key: the random key; needed if ``dropout_p`` > 0.
        query_segments: None, or integers that broadcast to ``(..., T)``, without the dim of the heads.
        key_segments: integers that broadcast to ``(..., S)``; given if and only if the other is. A query reads the keys
            with its own number.
        dropout_p: the probability with which a weight is dropped.
        is_causal: let query t read keys 0 to t only; not together with a mask.
        scale: factor of the scores, by default 1 / sqrt(D).
        enable_gqa: allow fewer heads of key and value than of queries.
        window_size: ``(left, right)``: query t reads keys t - left to t + right; None there: no limit. One number is
            both.
        soft_cap: replaces scores by ``soft_cap · tanh(score / soft_cap)``, before the mask.
        implementation: ``"plain"``, the composition; ``"kernel"``, the primitive; ``"blocks"``, ``"splash"`` or
            ``"cudnn"``, the primitive with one kind of kernel, or blocks where it is not available; ``"auto"`` takes
            the primitive for long sequences and the composition for short ones.
        across: as of `attention_primitive.attention`; with it the primitive is taken for short sequences too.
        head_parts: into how many parts the heads are cut before, so that an axis that splits them leaves the heads of a
            part to another one; 1 where they do not divide.

    Returns:
        ``(..., H, T, Dv)`` in the queries' dtype. A query whose keys are all masked gives NaN with a float mask of -inf
        and 0 with a bool mask, as torch does, and 0 where its window or segment has no key.
    """
    if not enable_gqa and not query.shape[:-2] == key.shape[:-2] == value.shape[:-2]:
        query, key, value = _broadcast(query, key, value)
    _check(query, key, value, attn_mask, dropout_key, dropout_p, is_causal, enable_gqa)
    scale = 1.0 / math.sqrt(query.shape[-1]) if scale is None else scale
    if implementation not in _IMPLEMENTATIONS:
        fail(
            "value",
            f"attention(implementation={implementation!r})",
            f"query {query.shape}",
            f"implementation is one of {', '.join(_IMPLEMENTATIONS)}",
            "implementation='auto'",
        )
    # Of a program with free sizes the composition is exported: blocks are counted when it is traced.
    is_fixed = all(isinstance(n, int) for n in (*query.shape, *key.shape))
    window = _window(window_size, is_causal, query.shape[-2], key.shape[-2])
    how = Scores(float(scale), window, _cap(soft_cap))
    segments = _segments(query, key, query_segments, key_segments)
    is_long = is_fixed and query.shape[-2] * key.shape[-2] >= LONG
    is_long = is_long or any(across)
    if dropout_p == 0 and (is_long if implementation == "auto" else implementation != "plain"):
        kernel = "auto" if implementation == "kernel" else implementation
        return _attend_in_groups(query, key, value, attn_mask, segments, how, kernel, across, head_parts)
    wide = compute_dtype(query.dtype)
    groups = query.shape[-3] // key.shape[-3] if enable_gqa and query.ndim > 2 else 1
    q = cast(query, wide) if groups == 1 else _group_heads(cast(query, wide), groups)
    k = cast(key, wide)
    q = lax.mul(q, np.asarray(scale, wide))
    scores, _ = how.cap_scores(_product(q, k, -1, -1, wide))  # (..., T, S) or (..., Hk, G, T, S)
    weights = _weights(scores, attn_mask, segments, how, groups)
    if dropout_p > 0:
        weights = dropout(dropout_key, weights, p=dropout_p)
    # The weights are as fine as the values: their product, and those of its backward, read half the bytes.
    out = cast(_product(cast(weights, value.dtype), value, -1, -2, wide), query.dtype)
    return out if groups == 1 else lax.reshape(out, (*query.shape[:-1], value.shape[-1]))


def _attend_in_groups(query, key, value, mask, segments, how: Scores, kernel: str, across: tuple, head_parts: int):
    """Return attention as one primitive, whose queries have a dim of groups before T, whatever their rank."""
    grouped = query.ndim > 2 and query.shape[-3] != key.shape[-3]
    groups = query.shape[-3] // key.shape[-3] if grouped else 1
    q = _group_heads(query, groups) if grouped else lax.expand_dims(query, (query.ndim - 2,))
    if mask is not None:
        mask = lax.expand_dims(mask, range(query.ndim - mask.ndim))
        mask = _mask_of_groups(mask, groups) if grouped else lax.expand_dims(mask, (mask.ndim - 2,))
    if head_parts > 1 and key.ndim > 2 and key.shape[-3] % head_parts == 0:
        q, key, value = (_cut(x, d, head_parts) for x, d in ((q, -4), (key, -3), (value, -3)))
        mask = mask if mask is None else _cut(mask, -4, head_parts)
        segments = segments and tuple(lax.expand_dims(x, (x.ndim - 2,)) for x in segments)
    out = attention(q, key, value, mask, segments, how=how, kernel=kernel, across=across)
    return lax.reshape(out, (*query.shape[:-1], value.shape[-1]))


def _cut(x, dim: int, parts: int):
    """Return an array whose dim of heads is cut in two, a dim of parts before the heads of each; of 1 stays 1."""
    dim += x.ndim
    split = (1, 1) if x.shape[dim] == 1 else (parts, x.shape[dim] // parts)
    return lax.reshape(x, (*x.shape[:dim], *split, *x.shape[dim + 1 :]))


def _mask_of_groups(mask, groups: int):
    """Return a mask (..., H or 1, T, S) as (..., Hk or 1, G or 1, T, S)."""
    heads = mask.shape[-3]
    split = (1, 1) if heads == 1 else (heads // groups, groups)
    return lax.reshape(mask, (*mask.shape[:-3], *split, *mask.shape[-2:]))


def _broadcast(*arrays):
    """Return the arrays with their leading dims broadcast against each other, if they can be."""
    try:
        lead = joint_shape(*(x.shape[:-2] for x in arrays))
    except ValueError:  # `_check` raises the error
        return arrays
    return tuple(broadcast_to(x, (*lead, *x.shape[-2:])) for x in arrays)


def _check(query, key, value, mask, dropout_key, dropout_p, is_causal, enable_gqa) -> None:
    seen = f"query {query.shape}, key {key.shape}, value {value.shape}"
    if (
        min(query.ndim, key.ndim, value.ndim) < 2
        or query.shape[-1] != key.shape[-1]
        or key.shape[-2] != value.shape[-2]
    ):
        fail(
            "shape",
            "scaled_dot_product_attention",
            seen,
            "query (..., T, D), key (..., S, D), value (..., S, Dv)",
            "transpose",
        )
    if not query.dtype == key.dtype == value.dtype:
        fail(
            "type",
            "scaled_dot_product_attention",
            f"dtypes {query.dtype}, {key.dtype}, {value.dtype}",
            "all are equal",
            "cast",
        )
    if mask is not None and is_causal:
        fail(
            "value",
            "scaled_dot_product_attention",
            "a mask and is_causal",
            "only one of them is given",
            "is_causal=False",
        )
    if dropout_p > 0 and dropout_key is None:
        fail("value", f"attention(dropout_p={dropout_p})", "no key", "dropout needs a random key", "dropout_p=0.0")
    heads = query.shape[:-2] == key.shape[:-2] == value.shape[:-2]
    grouped = (
        enable_gqa and query.ndim > 2 and key.shape[:-2] == value.shape[:-2] and query.shape[:-3] == key.shape[:-3]
    )
    if not heads and not (grouped and query.shape[-3] % key.shape[-3] == 0):
        fail(
            "shape",
            "scaled_dot_product_attention",
            seen,
            "the leading dims are equal (with enable_gqa, the key's heads divide the query's)",
            "expand them, or enable_gqa=True",
        )


def _segments(query, key, of_queries, of_keys) -> tuple[Any, Any] | None:
    """Return segments as ``(..., 1, T)`` and ``(..., 1, S)`` of the queries' rank less one; None if there are none."""
    if of_queries is None and of_keys is None:
        return None
    lead = query.shape[:-3]
    rows, keys = (
        _check_segment_ids(of_queries, (*lead, query.shape[-2])),
        _check_segment_ids(of_keys, (*lead, key.shape[-2])),
    )
    return (rows, keys) if query.ndim == 2 else (_with_heads(rows), _with_heads(keys))


def _check_segment_ids(x: Any, shape):
    own = getattr(x, "shape", ())
    if (
        not own
        or len(own) > len(shape)
        or own[-1] != shape[-1]
        or any(n not in (1, m) for n, m in zip(own, shape[-len(own) :]))
    ):
        seen = f"ids {own}" if own else "no ids on one side"
        rule = f"ids of queries are (..., T) and of keys (..., S), without the dim of the heads: here {shape}"
        fail(
            "shape",
            "attention(segment_ids=...)",
            seen,
            rule,
            "segment_ids=ids, or a pair (ids of queries, ids of keys)",
        )
    if np.dtype(x.dtype).kind not in "iu":
        fail("type", "attention(segment_ids=...)", f"ids of dtype {x.dtype}", "ids are integers", "segment_ids.long()")
    return lax.expand_dims(cast(x, np.int32), range(len(shape) - len(own)))


def _with_heads(ids):
    return lax.expand_dims(ids, (ids.ndim - 1,))


def _window(given, is_causal: bool, queries, keys) -> Window:
    """Return a window without the limits that hide nothing."""
    sides = given if isinstance(given, (tuple, list)) else (given, given)
    right = all(n is None or (isinstance(n, int) and not isinstance(n, bool) and n >= 0) for n in sides)
    if len(sides) != 2 or not right:
        rule = "a window is (left, right): keys before and after the query's own, from 0 on; None: all of them"
        fail("value", f"attention(window_size={given!r})", f"{queries} queries", rule, "window_size=(128, 0)")
    left, right = sides
    right = 0 if is_causal else right
    left = None if left is not None and isinstance(queries, int) and left >= queries - 1 else left
    right = None if right and isinstance(keys, int) and right >= keys - 1 else right
    return left, right


def _cap(given) -> float | None:
    if given is not None and not 0 < given < math.inf:
        rule = "scores are kept between minus the cap and the cap, a positive number"
        fail(
            "value", f"attention(soft_cap={given!r})", f"soft_cap={given!r}", rule, "soft_cap=50.0, or None for no cap"
        )
    return None if given is None else float(given)


def _group_heads(query, groups: int):
    """Return (..., H, T, D) as (..., Hk, G, T, D)."""
    return lax.reshape(query, (*query.shape[:-3], query.shape[-3] // groups, groups, *query.shape[-2:]))


def _product(x, y, x_dim: int, y_dim: int, dtype):
    """Contract a dim of x (..., [G,] T, ·) with one of y (..., ·, ·); leading dims are a batch, G and T stay free."""
    batch = tuple(range(y.ndim - 2))
    dims = (((x.ndim + x_dim,), (y.ndim + y_dim,)), (batch, batch))
    return lax.dot_general(x, y, dims, preferred_element_type=dtype)


def _weights(scores, mask, segments, how: Scores, groups: int):
    hides = []
    if how.window != EVERY_KEY:
        row, key = (lax.broadcasted_iota(np.int32, scores.shape[-2:], d) for d in (0, 1))
        hides.append(in_window(row, key, how.window))
    if segments is not None:
        hides.append(_segment_mask(segments[0], segments[1], groups))
    if mask is not None:
        mask = _mask_of_groups(mask, groups) if groups > 1 and mask.ndim > 2 else mask
        if mask.dtype == BOOL:
            hides.append(mask)
        else:
            scores = lax.add(scores, cast(broadcast_to(mask, scores.shape), scores.dtype))
    if not hides:
        return softmax(scores, dim=-1)
    keep = functools.reduce(lax.bitwise_and, [broadcast_to(x, scores.shape) for x in hides])
    if not may_hide_all(mask, segments, how):
        return softmax_where(scores, keep)
    # A row without any key gives 0, not 0 / 0: the lowest finite score for all, and the weights cleared after.
    low = lax.full_like(scores, np.finfo(scores.dtype).min)
    weights = softmax(lax.select_n(keep, low, scores), dim=-1)
    return lax.select_n(keep, lax.full_like(weights, 0), weights)


def _segment_mask(rows, keys, groups: int):
    """Return ``(..., 1, T, S)``, with groups ``(..., 1, 1, T, S)``: where segments ``(..., 1, T)`` and keys' agree."""
    shape = (*joint_shape(rows.shape[:-1], keys.shape[:-1]), rows.shape[-1], keys.shape[-1])
    same = lax.eq(
        broadcast_to(lax.expand_dims(rows, (rows.ndim,)), shape),
        broadcast_to(lax.expand_dims(keys, (keys.ndim - 1,)), shape),
    )
    return same if groups == 1 else lax.expand_dims(same, (same.ndim - 2,))
