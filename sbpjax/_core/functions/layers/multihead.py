"""Multi-head attention as a function of its weights; `sbpjax.nn.MultiheadAttention` holds them."""

from __future__ import annotations

import math
from typing import Any

from sbpjax._core.functions import cat
from sbpjax._core.functions.table import table
from sbpjax._core.ops.dims import fail
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.creation.like import zeros_like
from sbpjax._core.tensor.handle import dtype as dtypes

from .attention import scaled_dot_product_attention
from .dropout import dropout

linear, pad = (table.find_function("nn.functional", name) for name in ("linear", "pad"))


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Return projected attention `(L, N, E)` and, with `need_weights`, the attention weights.

    Args:
        query: `(L, N, E)` or `(L, E)`.
        key: `(S, N, Ek)` or `(S, Ek)`.
        value: `(S, N, Ev)` or `(S, Ev)`.
        embed_dim_to_check: E.
        num_heads: H, divides E.
        in_proj_weight: `(3 E, E)`, the projections of query, key and value, one below the other.
        in_proj_bias: `(3 E,)` or None.
        bias_k: `(1, 1, E)`, a key to append, or None.
        bias_v: `(1, 1, E)`, its value.
        add_zero_attn: append a key and value of zeros.
        dropout_p: probability of a zero among the weights in training.
        out_proj_weight: `(E, E)`.
        out_proj_bias: `(E,)` or None.
        training: whether weights are dropped.
        key_padding_mask: `(N, S)`; true (or minus infinity) hides a key.
        need_weights: also return the weights.
        attn_mask: `(L, S)` or `(N H, L, S)`; true hides, numbers are added.
        use_separate_proj_weight: take the next three instead of `in_proj_weight`.
        q_proj_weight: `(E, E)`.
        k_proj_weight: `(E, Ek)`.
        v_proj_weight: `(E, Ev)`.
        static_k: `(N H, S, E / H)` keys instead of projected ones.
        static_v: `(N H, S, E / H)` values instead of projected ones.
        average_attn_weights: average the weights over the heads.
        is_causal: whether `attn_mask`, which must be given, is the causal one.

    Raises:
        OpError: `query` is not of 2 or 3 dims or not of E features, or `attn_mask` is missing or of other sizes.
        OpAssertionError: a mask has a dtype or a number of dims that does not fit, or hides other keys.
    """
    _check(query, embed_dim_to_check, num_heads, attn_mask, is_causal)
    _check_masks(query, key, num_heads, key_padding_mask, attn_mask)
    single = query.ndim == 2
    if single:
        query, key, value = (x.unsqueeze(1) for x in (query, key, value))
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    query, key, value = (x.transpose(0, 1) for x in (query, key, value))  # (N, L, E)
    weights = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else in_proj_weight.chunk(3)
    biases = (None,) * 3 if in_proj_bias is None else in_proj_bias.chunk(3)
    q, k, v = (linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases))
    batch, length, width = q.shape
    if bias_k is not None:
        k = cat([k, bias_k.expand(batch, 1, -1)], dim=1)
        v = cat([v, bias_v.expand(batch, 1, -1)], dim=1)
    q, k, v = (
        x.reshape(batch, x.shape[1], num_heads, width // num_heads).transpose(1, 2) for x in (q, k, v)
    )  # (N, H, length, E/H)
    if static_k is not None:
        k = static_k.reshape(batch, num_heads, *static_k.shape[1:])
    if static_v is not None:
        v = static_v.reshape(batch, num_heads, *static_v.shape[1:])
    if add_zero_attn:
        k, v = pad(k, (0, 0, 0, 1)), pad(v, (0, 0, 0, 1))
    mask = _join_masks(key_padding_mask, attn_mask, (batch, num_heads, length, k.shape[2]), q)
    dropped = dropout_p if training else 0.0
    found = None
    if need_weights:
        scores = (q * (q.shape[-1] ** -0.5)) @ k.transpose(-2, -1)  # (N, H, L, S)
        found = (scores if mask is None else scores + mask).softmax(-1)
        found = dropout(found, dropped) if dropped else found
        out = found @ v
    else:
        out = scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropped)
    out = linear(out.transpose(1, 2).reshape(batch, length, width), out_proj_weight, out_proj_bias).transpose(0, 1)
    if found is not None and average_attn_weights:
        found = found.mean(1)
    if single:
        return out.squeeze(1), None if found is None else found.squeeze(0)
    return out, found


def _check(query: Tensor, width: int, heads: int, attn_mask: Tensor | None, is_causal: bool) -> None:
    operation = "multi_head_attention_forward(...)"
    if query.ndim not in (2, 3):
        rule = f"query should be unbatched 2D or batched 3D tensor but received {query.ndim}-D query tensor"
        fail("shape", operation, f"query {tuple(query.shape)}", rule, "query of (L, N, E)")
    if query.shape[-1] != width or width % heads:
        rule = (
            f"was expecting embedding dimension of {width}, which the {heads} heads divide, but got {query.shape[-1]}"
        )
        fail("shape", operation, f"query {tuple(query.shape)}", rule, f"query of (L, N, {width})")
    if is_causal and attn_mask is None:
        fail(
            "shape",
            "attention(is_causal=True)",
            "attn_mask=None",
            "Need attn_mask if specifying the is_causal hint: it only describes the mask",
            "attn_mask=sbpjax.ones(L, L).triu(1).bool()",
        )


def _check_masks(query: Tensor, key: Tensor, heads: int, padding: Tensor | None, attention: Tensor | None) -> None:
    operation = "multi_head_attention_forward(...)"
    for name, mask in (("attn_mask", attention), ("key_padding_mask", padding)):
        if mask is not None and not (mask.dtype == dtypes.bool_ or mask.dtype.is_floating_point):
            rule = f"only bool and floating types of {name} are supported"
            fail("assertion", operation, f"{name} of {mask.dtype.name}", rule, f"{name}.bool()")
    if attention is not None:
        found, pairs = tuple(attention.shape), (query.shape[0], key.shape[0])
        if len(found) not in (2, 3):
            rule = f"expected attn_mask to be None, 2-D or 3-D but found {len(found)}-D tensor instead"
            fail("assertion", operation, f"attn_mask {found}", rule, f"attn_mask of {pairs}")
        fits = pairs if len(found) == 2 else (heads * math.prod(query.shape[1:-1]), *pairs)
        if found != fits:
            rule = f"The shape of the {len(found)}D attn_mask is {found}, but should be {fits}"
            fail("shape", operation, f"attn_mask {found}", rule, f"attn_mask of {fits}")
    wanted = tuple(reversed(key.shape[:-1]))  # (N, S), or (S,) without a batch
    if padding is not None and tuple(padding.shape) != wanted:
        rule = f"key_padding_mask has the shape {wanted}, a truth value for each key"
        fail("assertion", operation, f"key_padding_mask {tuple(padding.shape)}", rule, "(input_ids == pad_id)")


def _join_masks(padding: Any, attention: Any, shape: tuple[int, ...], like: Tensor) -> Tensor | None:
    """Return both masks as one of numbers to add, broadcastable to `(N, H, L, S)`."""
    batch, heads, length, source = shape
    if attention is not None:
        attention = _wide(_additive(attention, like), source)
        if attention.ndim == 3:
            attention = attention.reshape(batch, heads, length, source)
    if padding is not None:
        padding = _wide(_additive(padding, like), source).reshape(batch, 1, 1, source)
    if attention is None or padding is None:
        return padding if attention is None else attention
    return attention + padding


def _wide(mask: Tensor, source: int) -> Tensor:
    """Return a mask that also shows the appended keys."""
    missing = source - mask.shape[-1]
    return pad(mask, (0, missing)) if missing else mask


def _additive(mask: Tensor, like: Tensor) -> Tensor:
    """Return a mask of truth values (true hides) as numbers to add."""
    if mask.dtype != dtypes.bool_:
        return mask.to(like.dtype)
    return zeros_like(mask, dtype=like.dtype).masked_fill(mask, float("-inf"))
