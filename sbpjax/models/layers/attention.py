"""Multi-head attention: grouped key heads, rotary embeddings, and norms of queries and keys."""

from __future__ import annotations

import sbpjax as flow
from sbpjax import nn
from sbpjax.nn import functional as F

from .cache import KeyValues
from .rotary import apply_rope


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
        q = self._by_head(self.q(x), self.heads)  # (B, H, T, C)
        k = self._by_head(self.k(x), self.kv_heads)  # (B, K, T, C)
        v = self._by_head(self.v(x), self.kv_heads)
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

    def _by_head(self, x: flow.Tensor, heads: int) -> flow.Tensor:
        return x.reshape(*x.shape[:2], heads, self.head_dim).transpose(1, 2)
