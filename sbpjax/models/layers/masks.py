"""Attention masks: causal, padding and sliding-window."""

from __future__ import annotations

import sbpjax as flow

from .tokens import make_position_ids


def make_attention_mask(
    input_ids: flow.Tensor,
    *,
    causal: bool,
    window: int | None = None,
    attention_mask: flow.Tensor | None = None,
    cache_position: flow.Tensor | None = None,
) -> tuple[flow.Tensor | None, bool]:
    """Return the arguments `attn_mask` and `is_causal` of an attention.

    A mask is only made where `is_causal` is not enough, as kernels skip the keys that it hides.

    Args:
        input_ids: `(B, T)`, for their number and placement.
        causal: hide keys after a query.
        window: with `causal`: how many keys a query reads, itself included; None for all.
        attention_mask: `(B, T)`, nonzero for tokens, 0 for padding; None if there is no padding. With a cache of S
            slots `(B, S)`.
        cache_position: with a cache: the slot of the first token, a number or `(B,)`.

    Returns:
        A mask of bools that broadcasts to ``(B, H, T, T)``, with a cache to ``(B, H, T, S)``, or None; and whether the
        attention is causal beside it.

    Example:
        >>> mask, is_causal = flow.models.layers.make_attention_mask(flow.zeros(1, 3), causal=True, window=2)
        >>> mask.int().tolist(), is_causal
        ([[1, 0, 0], [1, 1, 0], [0, 1, 1]], False)
    """
    length = input_ids.shape[1]
    reach: int = length if window is None else window
    if attention_mask is None and (not causal or reach >= length):
        return None, causal
    mask = None
    if causal:
        queries = keys = make_position_ids(input_ids)
        if cache_position is not None and attention_mask is not None:
            queries, keys = (
                queries + (cache_position[:, None] if cache_position.ndim else cache_position),
                make_position_ids(attention_mask),
            )
        behind = queries[..., None] - keys  # (T, T), (T, S) or (B, T, S)
        mask = behind >= 0
        if reach < length or (cache_position is not None and window is not None):
            mask = mask & (behind < reach)
        if mask.ndim == 3:
            mask = mask[:, None]  # (B, 1, T, S)
    if attention_mask is not None:
        there = attention_mask.bool()[:, None, None, :]  # (B, 1, 1, S)
        mask = there if mask is None else mask & there
    return mask, False
