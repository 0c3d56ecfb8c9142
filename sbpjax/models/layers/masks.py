"""Attention masks: causal, padding and sliding-window."""

from __future__ import annotations

import sbpjax as flow

from .tokens import positions_of


def attention_mask(
    tokens: flow.Tensor,
    *,
    causal: bool,
    window: int | None = None,
    present: flow.Tensor | None = None,
    at: flow.Tensor | None = None,
) -> tuple[flow.Tensor | None, bool]:
    """Return the arguments `attn_mask` and `is_causal` of an attention.

    A mask is only made where `is_causal` is not enough, as kernels skip the keys that it hides.

    Args:
        tokens: `(B, T)`, for their number and placement.
        causal: hide what stands behind a query.
        window: with `causal`: how many keys a query reads, itself included; None for all.
        present: `(B, T)`, nonzero where there is a token and not padding; None if there is no padding. With a cache
            of S slots `(B, S)`.
        at: with a cache: the slot of the first token, a number or `(B,)`.

    Returns:
        A mask of bools that broadcasts to ``(B, H, T, T)``, with a cache to ``(B, H, T, S)``, or None; and whether the
        attention is causal beside it.

    Example:
        >>> mask, is_causal = flow.models.layers.attention_mask(flow.zeros(1, 3), causal=True, window=2)
        >>> mask.int().tolist(), is_causal
        ([[1, 0, 0], [1, 1, 0], [0, 1, 1]], False)
    """
    length = tokens.shape[1]
    reach: int = length if window is None else window
    if present is None and (not causal or reach >= length):
        return None, causal
    mask = None
    if causal:
        queries = keys = positions_of(tokens)
        if at is not None and present is not None:
            queries, keys = queries + (at[:, None] if at.ndim else at), positions_of(present)
        behind = queries[..., None] - keys  # (T, T), (T, S) or (B, T, S)
        mask = behind >= 0
        if reach < length or (at is not None and window is not None):
            mask = mask & (behind < reach)
        if mask.ndim == 3:
            mask = mask[:, None]  # (B, 1, T, S)
    if present is not None:
        there = present.bool()[:, None, None, :]  # (B, 1, 1, S)
        mask = there if mask is None else mask & there
    return mask, False
