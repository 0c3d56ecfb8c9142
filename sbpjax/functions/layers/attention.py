"""Scaled dot-product attention of tensors."""

from __future__ import annotations

import contextlib
from contextvars import ContextVar

from sbpjax.ops import attention as ops
from sbpjax.tensor import Tensor
from sbpjax.tensor.dispatch import apply
from sbpjax.tensor.generator import default_generator

_IMPLEMENTATION = ContextVar("implementation", default="auto")


@contextlib.contextmanager
def attention_by(implementation: str):
    """Let the attention that is traced or run in a block be of one implementation.

    Args:
        implementation: as in `sbpjax.ops.attention.scaled_dot_product_attention`.
    """
    token = _IMPLEMENTATION.set(implementation)
    try:
        yield
    finally:
        _IMPLEMENTATION.reset(token)


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Return softmax(q kᵀ · scale + mask) v.

    Args:
        query: `(..., H, L, D)`; splits of the batch and of the heads need no communication.
        key: `(..., Hk, S, D)`.
        value: `(..., Hk, S, Dv)`.
        attn_mask: `(..., L, S)`, broadcast; true keeps, numbers are added.
        dropout_p: probability of a zero among the weights.
        is_causal: hide every key behind its query.
        scale: factor of the scores; None is 1 / sqrt(D).
        enable_gqa: Hk may divide H; each key head then serves several query heads.

    Returns:
        ``(..., H, L, Dv)``.

    Example:
        >>> q = flow.ones(2, 4, 8, 16).to_global(flow.placement("cpu", [0, 1]), flow.sbp.split(1))
        >>> y = flow.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True)
        >>> y.shape, y.sbp
        (sbpjax.Size([2, 4, 8, 16]), (sbpjax.sbp.split(dim=1),))
    """
    random = default_generator.key() if dropout_p > 0 else None
    return apply(
        ops.scaled_dot_product_attention,
        query,
        key,
        value,
        attn_mask,
        random,
        dropout_p=float(dropout_p),
        is_causal=is_causal,
        scale=None if scale is None else float(scale),
        enable_gqa=enable_gqa,
        implementation=_IMPLEMENTATION.get(),
    )
