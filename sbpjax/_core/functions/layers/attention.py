"""Scaled dot-product attention: public function and implementation contexts."""

from __future__ import annotations

import contextlib
from contextvars import ContextVar

from sbpjax._core.ops.attention import attention as ops
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.creation.generator import default_generator
from sbpjax._core.tensor.dispatch.dispatch import apply

_IMPLEMENTATION = ContextVar("implementation", default="auto")
_ACROSS: ContextVar[tuple[tuple[str, ...], int]] = ContextVar("across", default=((), 1))


@contextlib.contextmanager
def attention_by(implementation: str):
    """Select the implementation of attention that is traced or run in a block.

    Args:
        implementation: as in `_core.ops.attention.attention.scaled_dot_product_attention`.
    """
    token = _IMPLEMENTATION.set(implementation)
    try:
        yield
    finally:
        _IMPLEMENTATION.reset(token)


@contextlib.contextmanager
def attention_across(across: tuple[str, ...], head_parts: int = 1):
    """Set the division of attention over axes of the placement, for attention traced or run in a block.

    Args:
        across: for every axis ``"ring"``, ``"heads"``, or ``""``, which leaves it to the planner.
        head_parts: as in `_core.ops.attention.attention.scaled_dot_product_attention`.
    """
    token = _ACROSS.set((across, head_parts))
    try:
        yield
    finally:
        _ACROSS.reset(token)


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    *,
    window_size: int | tuple[int | None, int | None] | None = None,
    segment_ids: Tensor | tuple[Tensor, Tensor] | None = None,
    soft_cap: float | None = None,
) -> Tensor:
    """Return softmax(q kᵀ · scale + mask) v.

    Long sequences take a kernel whose memory grows with their length, and which skips the keys that a window hides.

    Args:
        query: `(..., H, L, D)`; splits of the batch and of the heads need no communication.
        key: `(..., Hk, S, D)`.
        value: `(..., Hk, S, Dv)`.
        attn_mask: `(..., L, S)`, broadcast; true keeps, numbers are added.
        dropout_p: probability of a zero among the weights.
        is_causal: hide every key after its query.
        scale: factor of the scores; None is 1 / sqrt(D).
        enable_gqa: Hk may divide H; each key head then serves several query heads.
        window_size: `(left, right)`, as in FlashAttention and JAX: query t reads the keys t - left to t + right; None
            for no limit on that side. One number n is `(n, n)`. `(n - 1, 0)` is a sliding window of n tokens, and
            `(None, 0)` causal, which may be combined with a mask.
        segment_ids: integers of 32 bits `(..., L)`, without the dim of the heads, for sequences packed into one row: a
            query reads the keys that have its number. Of other keys than queries a pair, `(..., L)` and `(..., S)`. A
            split of the batch needs no communication.
        soft_cap: the bound of the scores, `soft_cap * tanh(score / soft_cap)`, taken before the mask is added.

    Returns:
        ``(..., H, L, Dv)``. A query that a window, a segment or a mask of bools leaves no key gives 0.

    Raises:
        OpError: shapes do not fit each other.
        OpTypeError: dtypes differ, or ids are not integers.
        OpValueError: a mask beside `is_causal`, a window below 0, a soft cap that is not positive.

    Example:
        >>> q = flow.ones(2, 4, 8, 16).to_global(flow.placement("cpu", [0, 1]), flow.sbp.split(1))
        >>> y = flow.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True)
        >>> y.shape, y.sbp
        (sbpjax.Size([2, 4, 8, 16]), (sbpjax.sbp.split(dim=1),))
        >>> x = flow.arange(4.0).reshape(1, 1, 4, 1)
        >>> ids = flow.tensor([[0, 0, 1, 1]])
        >>> flow.nn.functional.scaled_dot_product_attention(x * 0, x, x, segment_ids=ids).flatten().tolist()
        [0.5, 0.5, 2.5, 2.5]
        >>> flow.nn.functional.scaled_dot_product_attention(x * 0, x, x, window_size=(1, 0)).flatten().tolist()
        [0.0, 0.5, 1.5, 2.5]
    """
    across, head_parts = _ACROSS.get()
    random = default_generator.key() if dropout_p > 0 else None
    of_queries, of_keys = segment_ids if isinstance(segment_ids, (tuple, list)) else (segment_ids, segment_ids)
    return apply(
        ops.scaled_dot_product_attention,
        query,
        key,
        value,
        attn_mask,
        random,
        of_queries,
        of_keys,
        dropout_p=float(dropout_p),
        is_causal=is_causal,
        scale=None if scale is None else float(scale),
        enable_gqa=enable_gqa,
        window_size=tuple(window_size) if isinstance(window_size, list) else window_size,
        soft_cap=soft_cap,
        implementation=_IMPLEMENTATION.get(),
        across=across,
        head_parts=head_parts,
    )
