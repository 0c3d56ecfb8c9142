"""`MultiheadAttention` layer: attention with learned projections."""

from __future__ import annotations

from typing import Any

from sbpjax._core.functions import nn as F
from sbpjax._core.functions.layers.attention import attention_across as attention_across
from sbpjax._core.functions.layers.attention import attention_by as attention_by
from sbpjax._core.ops.dims import fail
from sbpjax._core.tensor import Tensor
from sbpjax.nn import init
from sbpjax.nn.layers.linear import NonDynamicallyQuantizableLinear
from sbpjax.nn.module import Module
from sbpjax.nn.parameter import parameter


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

    Returns:
        The outputs ``(L, N, E)``, and the weights ``(N, L, S)`` averaged over the heads. A split of the batch N stays.

    Example:
        >>> x = flow.ones(3, 5, 8)
        >>> y, weights = flow.nn.MultiheadAttention(8, 2, batch_first=True)(x, x, x)
        >>> y.shape, weights.shape
        (sbpjax.Size([3, 5, 8]), sbpjax.Size([3, 5, 5]))
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
                "assertion",
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
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, **options)
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
            is_causal: whether `attn_mask`, which must be given, is the causal one.
        """
        if query.ndim == 3 and self.batch_first:
            query, key, value = (x.transpose(0, 1) for x in (query, key, value))
        out, weights = F.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            use_separate_proj_weight=not self._one_projection,
            q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight,
            v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        return (out.transpose(0, 1) if self.batch_first and out.ndim == 3 else out), weights
