"""`MultiheadAttention`: attention with learned projections, PyTorch's interface."""

from __future__ import annotations

from typing import Any

import sbpjax
from sbpjax.nn import functional as F
from sbpjax.nn import init
from sbpjax.nn.linear import Linear
from sbpjax.nn.module import Module
from sbpjax.nn.parameter import parameter
from sbpjax.ops.dims import fail
from sbpjax.tensor import Tensor


class MultiheadAttention(Module):
    """Project queries, keys and values to several heads, attend, and project back.

    Args:
        embed_dim: E, width of the query and of the result.
        num_heads: H, must divide E.
        dropout: probability of a zero among the attention weights in training.
        bias: whether the projections have one.
        add_bias_kv: append a learned key and value.
        add_zero_attn: append a key and value of zeros.
        kdim: width of the keys; None is E.
        vdim: width of the values; None is E.
        batch_first: `(N, L, E)` rather than `(L, N, E)`.
        device: where the parameters are made.
        dtype: their dtype.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0:
            rule = f"embed_dim and num_heads must be greater than 0, got {embed_dim} and {num_heads}"
            fail(
                "value", "MultiheadAttention(...)", f"embed_dim={embed_dim}, num_heads={num_heads}", rule, "e.g. 64, 4"
            )
        if embed_dim % num_heads != 0:
            fail(
                "value",
                "MultiheadAttention(...)",
                f"embed_dim={embed_dim}, num_heads={num_heads}",
                f"embed_dim must be divisible by num_heads: {embed_dim} and {num_heads}",
                f"embed_dim={-(-embed_dim // num_heads) * num_heads}",
            )
        self.embed_dim, self.num_heads, self.dropout = embed_dim, num_heads, dropout
        self.kdim, self.vdim = kdim or embed_dim, vdim or embed_dim
        self.batch_first, self.add_zero_attn = batch_first, add_zero_attn
        options = {"device": device, "dtype": dtype}
        self._one_projection = self.kdim == embed_dim and self.vdim == embed_dim
        if self._one_projection:
            self.in_proj_weight = parameter(3 * embed_dim, embed_dim, **options)
            for name in ("q_proj_weight", "k_proj_weight", "v_proj_weight"):
                self.register_parameter(name, None)
        else:
            self.q_proj_weight = parameter(embed_dim, embed_dim, **options)
            self.k_proj_weight = parameter(embed_dim, self.kdim, **options)
            self.v_proj_weight = parameter(embed_dim, self.vdim, **options)
            self.register_parameter("in_proj_weight", None)
        self.register_parameter("in_proj_bias", parameter(3 * embed_dim, **options) if bias else None)
        self.out_proj = Linear(embed_dim, embed_dim, bias=bias, **options)
        for name in ("bias_k", "bias_v"):
            self.register_parameter(name, parameter(1, 1, embed_dim, **options) if add_bias_kv else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)
        for weight in (self.bias_k, self.bias_v):
            if weight is not None:
                init.xavier_normal_(weight)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Return the result and, with `need_weights`, the attention weights.

        Args:
            query: `(L, N, E)`, `(N, L, E)` with `batch_first`, or `(L, E)`.
            key: `(S, N, Ek)` and so on.
            value: `(S, N, Ev)` and so on.
            key_padding_mask: `(N, S)`; true (or minus infinity) hides a key.
            need_weights: also return the weights.
            attn_mask: `(L, S)` or `(N H, L, S)`; true hides, numbers are added.
            average_attn_weights: average the weights over the heads.
            is_causal: says that `attn_mask`, which must be given, is the causal one.
        """
        if is_causal and attn_mask is None:
            fail(
                "shape",
                "MultiheadAttention.forward(is_causal=True)",
                "attn_mask=None",
                "Need attn_mask if specifying the is_causal hint: it only says what the mask is",
                "attn_mask=sbpjax.ones(L, L).triu(1).bool()",
            )
        single = query.ndim == 2
        if single:
            query, key, value = (x.unsqueeze(0) for x in (query, key, value))  # (1, L, E)
        elif not self.batch_first:
            query, key, value = (x.transpose(0, 1) for x in (query, key, value))  # (N, L, E)
        q, k, v = self._project(query, key, value)  # each (N, H, length, E/H)
        batch, length, source = q.shape[0], q.shape[2], k.shape[2]
        mask = self._mask(key_padding_mask, attn_mask, batch, length, source, q)
        dropout = self.dropout if self.training else 0.0
        weights = None
        if need_weights:
            scores = (q * (q.shape[-1] ** -0.5)) @ k.transpose(-2, -1)  # (N, H, L, S)
            weights = F.softmax(scores if mask is None else scores + mask, dim=-1)
            out = F.dropout(weights, dropout, self.training) @ v if dropout else weights @ v
        else:
            out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout)
        out = self.out_proj(out.transpose(1, 2).reshape(batch, length, self.embed_dim))  # (N, L, E)
        if weights is not None and average_attn_weights:
            weights = weights.mean(1)
        if single:
            return out.squeeze(0), None if weights is None else weights.squeeze(0)
        return out if self.batch_first else out.transpose(0, 1), weights

    def _project(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        if self.in_proj_weight is not None:
            weights = self.in_proj_weight.chunk(3)
        else:
            weights = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        biases = (None,) * 3 if self.in_proj_bias is None else self.in_proj_bias.chunk(3)
        q, k, v = (F.linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases))
        if self.bias_k is not None:
            batch = k.shape[0]
            k = sbpjax.cat([k, self.bias_k.expand(batch, 1, -1)], dim=1)
            v = sbpjax.cat([v, self.bias_v.expand(batch, 1, -1)], dim=1)
        if self.add_zero_attn:
            k = F.pad(k, (0, 0, 0, 1))
            v = F.pad(v, (0, 0, 0, 1))
        heads = self.num_heads
        split = [x.reshape(x.shape[0], x.shape[1], heads, -1).transpose(1, 2) for x in (q, k, v)]
        return split[0], split[1], split[2]

    def _mask(self, padding: Any, attention: Any, batch: int, length: int, source: int, like: Tensor) -> Tensor | None:
        """Return both masks as one of numbers to add, broadcastable to `(N, H, L, S)`."""
        if attention is not None:
            attention = _additive(attention, like)
            attention = self._wide(attention, source)
            if attention.ndim == 3:
                attention = attention.reshape(batch, self.num_heads, length, source)
        if padding is not None:
            padding = self._wide(_additive(padding, like), source)
            padding = padding.reshape(batch, 1, 1, source)
        if attention is None or padding is None:
            return padding if attention is None else attention
        return attention + padding

    def _wide(self, mask: Tensor, source: int) -> Tensor:
        """Return a mask that also shows the appended keys."""
        missing = source - mask.shape[-1]
        return F.pad(mask, (0, missing)) if missing else mask


def _additive(mask: Tensor, like: Tensor) -> Tensor:
    """Return a mask of truth values (true hides) as numbers to add."""
    if mask.dtype != sbpjax.bool:
        return mask.to(like.dtype)
    return sbpjax.zeros_like(mask, dtype=like.dtype).masked_fill(mask, float("-inf"))
