"""Scaled dot-product attention: softmax(q kᵀ · scale + mask) v.

Worked case: q (B, H, T, D), k and v (B, Hk, S, D) with Hk dividing H: query head h reads key head ``h // (H / Hk)``.
The queries are viewed as (B, Hk, H / Hk, T, D), so keys and values are never repeated. Two contractions and one
softmax: splits of B and of the heads pass straight through.

This is the *composition*, which holds all T × S scores. From `LONG` queries and keys on, one primitive takes its place,
which holds a block of them at a time (`sbpjax.ops.attention_primitive`). With dropout it is always the composition: a
kernel would draw other numbers on each platform.
"""

from __future__ import annotations

import math

import numpy as np
from jax import lax

from .activation import softmax, softmax_where
from .attention_primitive import attention
from .dims import fail
from .promote import BOOL, cast, compute_dtype, spread
from .random import dropout

LONG = 512 * 512  # scores per head; below, the composition is faster on a CPU (`benchmarks/attention.py --crossover`)
_IMPLEMENTATIONS = ("auto", "plain", "kernel", "blocks", "splash", "cudnn")


def scaled_dot_product_attention(
    query,
    key,
    value,
    attn_mask=None,
    dropout_key=None,
    /,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    implementation: str = "auto",
):
    """Return the attention of queries to keys, applied to values.

    Args:
        query: ``(..., H, T, D)``.
        key: ``(..., Hk, S, D)``.
        value: ``(..., Hk, S, Dv)``.
        attn_mask: None, bools (True takes part) or floats (added), broadcast to ``(..., H, T, S)``.
        dropout_key: the random key; needed if ``dropout_p`` > 0.
        dropout_p: the probability with which a weight is dropped.
        is_causal: let query t read keys 0 to t only; not together with a mask.
        scale: factor of the scores, by default 1 / sqrt(D).
        enable_gqa: allow fewer heads of key and value than of queries.
        implementation: ``"plain"``, the composition; ``"kernel"``, the primitive; ``"blocks"``, ``"splash"`` or
            ``"cudnn"``, the primitive with one kind of kernel, or blocks where it is not to be had; ``"auto"`` takes
            the primitive for long sequences and the composition for short ones.

    Returns:
        ``(..., H, T, Dv)`` in the queries' dtype. A query whose keys are all masked gives NaN with a float mask of -inf
        and 0 with a bool mask, as torch does.
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
    is_long = is_fixed and query.shape[-2] * key.shape[-2] >= LONG
    if dropout_p == 0 and (is_long if implementation == "auto" else implementation != "plain"):
        kernel = "auto" if implementation == "kernel" else implementation
        return _as_one(query, key, value, attn_mask, scale, is_causal, kernel)
    wide = compute_dtype(query.dtype)
    groups = query.shape[-3] // key.shape[-3] if enable_gqa and query.ndim > 2 else 1
    q = cast(query, wide) if groups == 1 else _grouped(cast(query, wide), groups)
    k = cast(key, wide)
    q = lax.mul(q, np.asarray(scale, wide))
    scores = _product(q, k, -1, -1, wide)  # (..., T, S) or (..., Hk, G, T, S)
    if is_causal:
        attn_mask = _causal(query.shape[-2], key.shape[-2])
    weights = _weights(scores, attn_mask, groups, never_empty=is_causal)
    if dropout_p > 0:
        weights = dropout(dropout_key, weights, p=dropout_p)
    # The weights are as fine as the values: their product, and those of its backward, read half the bytes.
    out = cast(_product(cast(weights, value.dtype), value, -1, -2, wide), query.dtype)
    return out if groups == 1 else lax.reshape(out, (*query.shape[:-1], value.shape[-1]))


def _as_one(query, key, value, mask, scale: float, causal: bool, kernel: str):
    """Return attention as one primitive, whose queries have a dim of groups before T, whatever their rank."""
    grouped = query.ndim > 2 and query.shape[-3] != key.shape[-3]
    groups = query.shape[-3] // key.shape[-3] if grouped else 1
    q = _grouped(query, groups) if grouped else lax.expand_dims(query, (query.ndim - 2,))
    if mask is not None:
        mask = lax.expand_dims(mask, range(query.ndim - mask.ndim))
        mask = _mask_of_groups(mask, groups) if grouped else lax.expand_dims(mask, (mask.ndim - 2,))
    out = attention(q, key, value, mask, scale=scale, causal=causal, kernel=kernel)
    return lax.reshape(out, (*query.shape[:-1], value.shape[-1]))


def _mask_of_groups(mask, groups: int):
    """Return a mask (..., H or 1, T, S) as (..., Hk or 1, G or 1, T, S)."""
    heads = mask.shape[-3]
    split = (1, 1) if heads == 1 else (heads // groups, groups)
    return lax.reshape(mask, (*mask.shape[:-3], *split, *mask.shape[-2:]))


def _broadcast(*arrays):
    """Return the arrays with their leading dims broadcast against each other, if they can be."""
    try:
        lead = np.broadcast_shapes(*(x.shape[:-2] for x in arrays))
    except ValueError:  # `_check` says what is wrong
        return arrays
    return tuple(spread(x, (*lead, *x.shape[-2:])) for x in arrays)


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


def _grouped(query, groups: int):
    """Return (..., H, T, D) as (..., Hk, G, T, D)."""
    return lax.reshape(query, (*query.shape[:-3], query.shape[-3] // groups, groups, *query.shape[-2:]))


def _product(x, y, x_dim: int, y_dim: int, dtype):
    """Contract a dim of x (..., [G,] T, ·) with one of y (..., ·, ·); leading dims are a batch, G and T stay free."""
    batch = tuple(range(y.ndim - 2))
    dims = (((x.ndim + x_dim,), (y.ndim + y_dim,)), (batch, batch))
    return lax.dot_general(x, y, dims, preferred_element_type=dtype)


def _causal(queries: int, keys: int):
    shape = (queries, keys)
    return lax.ge(lax.broadcasted_iota(np.int32, shape, 0), lax.broadcasted_iota(np.int32, shape, 1))


def _weights(scores, mask, groups: int, never_empty: bool):
    if mask is None:
        return softmax(scores, dim=-1)
    if groups > 1 and mask.ndim > 2:
        mask = _mask_of_groups(mask, groups)
    mask = spread(mask, scores.shape)
    if mask.dtype != BOOL:
        return softmax(lax.add(scores, cast(mask, scores.dtype)), dim=-1)
    if never_empty:
        return softmax_where(scores, mask)
    # A row without any key gives 0, not 0 / 0: the lowest finite score for all, and the weights cleared after.
    low = lax.full_like(scores, np.finfo(scores.dtype).min)
    weights = softmax(lax.select_n(mask, low, scores), dim=-1)
    return lax.select_n(mask, lax.full_like(weights, 0), weights)
