"""Multi-head attention: grouped key heads, rotary embeddings, norms of queries and keys; its masks and its KV cache.

A cache has a fixed number of slots, and so one program serves every token. Slot s holds what came s-th into the cache;
that is a token's position only where no padding stands before it.
"""

from __future__ import annotations

from jax import lax

import sbpjax as flow
from sbpjax import nn
from sbpjax.nn import functional as F

from .rotary import apply_rope
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


def _put(whole, part, cache_position, dim: int):
    return lax.dynamic_update_slice_in_dim(whole, part, cache_position, dim)


put = flow.wrap_jax(_put, name="put_in_slots")


class KeyValues(nn.Module):
    """The keys and values of one attention layer.

    Args:
        k: zeros `(B, K, S, C)` for S slots, in the layout that the cache keeps.
        v: likewise.

    Example:
        >>> cache = flow.models.layers.KeyValues(flow.zeros(1, 1, 4, 2), flow.zeros(1, 1, 4, 2))
        >>> k, v = cache.extend(flow.ones(1, 1, 1, 2), flow.ones(1, 1, 1, 2), flow.tensor(2))
        >>> k[0, 0, :, 0].tolist()
        [0.0, 0.0, 1.0, 0.0]
    """

    k: flow.Tensor
    v: flow.Tensor

    def __init__(self, k: flow.Tensor, v: flow.Tensor):
        super().__init__()
        self.register_buffer("k", k)
        self.register_buffer("v", v)

    def extend(self, k: flow.Tensor, v: flow.Tensor, cache_position: flow.Tensor) -> tuple[flow.Tensor, flow.Tensor]:
        """Put keys and values of T tokens into slots, and return those of all slots.

        Args:
            k: `(B, K, T, C)`.
            v: likewise.
            cache_position: the slot of the first one, a number; ``cache_position + T`` is at most S.

        Returns:
            Two ``(B, K, S, C)``; slots that nothing was put into are zero.
        """
        self.k.copy_(put(self.k, k.to(self.k.dtype), cache_position, 2))
        self.v.copy_(put(self.v, v.to(self.v.dtype), cache_position, 2))
        return self.k, self.v


class Attention(nn.Module):
    """Project to queries, keys and values, attend, and project back.

    Queries, keys and values have a matrix each, whose rows are ordered by head: a split of the rows over ranks gives
    each rank whole heads, and nothing moves until the last product.

    Args:
        width: D, of the input and the output.
        heads: H, of the queries.
        kv_heads: K, of keys and values; each serves H / K heads of queries. H by default.
        head_dim: C; by default D / H.
        bias: whether queries, keys and values have a bias.
        out_bias: whether the output has one; by default as `bias`.
        norm_eps: the epsilon of RMS norms over C of queries and keys; None for no norms.
        dropout: the probability of a zero among the attention weights, in training.
        window: how many keys a query reads where `is_causal`, its own included; None for all.

    Example:
        >>> attention = flow.models.layers.Attention(16, heads=4, kv_heads=2)
        >>> attention(flow.ones(2, 5, 16), is_causal=True).shape
        sbpjax.Size([2, 5, 16])
    """

    def __init__(
        self,
        width: int,
        heads: int,
        *,
        kv_heads: int | None = None,
        head_dim: int | None = None,
        bias: bool = False,
        out_bias: bool | None = None,
        norm_eps: float | None = None,
        dropout: float = 0.0,
        window: int | None = None,
    ):
        super().__init__()
        self.heads, self.kv_heads = heads, heads if kv_heads is None else kv_heads
        self.head_dim = width // heads if head_dim is None else head_dim
        self.dropout, self.window = dropout, window
        self.q = nn.Linear(width, self.heads * self.head_dim, bias=bias)
        self.k = nn.Linear(width, self.kv_heads * self.head_dim, bias=bias)
        self.v = nn.Linear(width, self.kv_heads * self.head_dim, bias=bias)
        self.out = nn.Linear(self.heads * self.head_dim, width, bias=bias if out_bias is None else out_bias)
        self.q_norm = None if norm_eps is None else nn.RMSNorm(self.head_dim, eps=norm_eps)
        self.k_norm = None if norm_eps is None else nn.RMSNorm(self.head_dim, eps=norm_eps)

    @property
    def cache_dtype(self) -> flow.dtype:
        """The dtype of keys and values in a cache: the weight's, but of 8 bits float32, in which that computes."""
        weight = self.k.weight
        return flow.float32 if weight.element_size() == 1 else weight.dtype

    def forward(
        self,
        x: flow.Tensor,
        cos_sin: tuple[flow.Tensor, flow.Tensor] | None = None,
        mask: flow.Tensor | None = None,
        is_causal: bool = False,
        cache: KeyValues | None = None,
        cache_position: flow.Tensor | None = None,
    ) -> flow.Tensor:
        """Return what each position gathers from the others.

        Args:
            x: `(B, T, D)`.
            cos_sin: cosines and sines of `rotary.rope_cos_sin`; None applies no rotation.
            mask: bools that broadcast to `(B, H, T, T)`; False hides a key from a query. With a cache of S slots
                `(B, H, T, S)`.
            is_causal: hide all keys behind a query, and those before its window.
            cache: keys and values of the tokens before these; these are put into it.
            cache_position: with a cache: the slot of the first of these.

        Returns:
            ``(B, T, D)``; of a split batch split alike, of heads split over ranks a partial sum.
        """
        q = self._split_heads(self.q(x), self.heads)  # (B, H, T, C)
        k = self._split_heads(self.k(x), self.kv_heads)  # (B, K, T, C)
        v = self._split_heads(self.v(x), self.kv_heads)
        if self.q_norm is not None and self.k_norm is not None:
            q, k = self.q_norm(q), self.k_norm(k)
        if cos_sin is not None:
            q, k = apply_rope(q, *cos_sin), apply_rope(k, *cos_sin)
        if cache is not None and cache_position is not None:
            k, v = cache.extend(k, v, cache_position)  # (B, K, S, C)
        reach = None if self.window is None else self.window - 1
        y = F.scaled_dot_product_attention(
            q,
            k,
            v,
            attn_mask=mask,
            dropout_p=self.dropout if self.training else 0.0,
            enable_gqa=self.kv_heads != self.heads,
            window_size=(reach, 0) if is_causal else None,
        )
        return self.out(y.transpose(1, 2).reshape(*x.shape[:2], self.heads * self.head_dim))

    def _split_heads(self, x: flow.Tensor, heads: int) -> flow.Tensor:
        return x.reshape(*x.shape[:2], heads, self.head_dim).transpose(1, 2)
