"""`Transformer`, encoder, decoder and their layers, with PyTorch's interface and state.

Source: Vaswani et al., Attention Is All You Need (2017).
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from sbpjax._core.functions import nn as F
from sbpjax._core.functions.table.texts import InheritedDocstring
from sbpjax._core.ops.dims import fail
from sbpjax._core.runtime import sizes
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.creation import creation
from sbpjax._core.tensor.handle import dtype as dtypes
from sbpjax.nn import init
from sbpjax.nn.containers import ModuleList
from sbpjax.nn.layers.attention import MultiheadAttention
from sbpjax.nn.layers.dropout import Dropout
from sbpjax.nn.layers.linear import Linear
from sbpjax.nn.layers.normalization import LayerNorm
from sbpjax.nn.module import Module

Activation = str | Callable[[Tensor], Tensor]


def _activation(name: Activation) -> Callable[[Tensor], Tensor]:
    if not isinstance(name, str):
        return name
    if name not in ("relu", "gelu"):
        rule = f"activation should be relu/gelu, not {name}"
        fail("shape", "a transformer layer", f"activation={name!r}", rule, "activation='relu'")
    return F.relu if name == "relu" else F.gelu


def _copies(layer: Module, count: int) -> ModuleList:
    sizes.check_layers(f"{count} copies of {type(layer).__name__}", count, len(list(layer.parameters())) or 1)
    return ModuleList([copy.deepcopy(layer) for _ in range(count)])


def _is_causal(mask: Tensor | None, is_causal: bool | None) -> bool:
    """Return whether a mask is declared, or found, to be the causal one; it only selects the computation."""
    return bool(is_causal) and mask is not None


class _Layer(Module):
    """A layer of attentions and a network.

    Args:
        d_model: E, the features.
        nhead: the number of heads.
        dim_feedforward: the features between the two layers.
        dropout: probability of a zero.
        activation: ``"relu"``, ``"gelu"`` or a function.
        layer_norm_eps: eps of the norms.
        batch_first: `(N, L, E)` rather than `(L, N, E)`.
        norm_first: apply norms before attention and network rather than after the residuals.
        bias: whether linear layers and norms have one.
        device: where the parameters are made.
        dtype: their dtype.
    """

    _attentions = ("self_attn",)

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__()
        options = {"bias": bias, "device": device, "dtype": dtype}
        for name in self._attentions:
            attention = MultiheadAttention(d_model, nhead, dropout=dropout, batch_first=batch_first, **options)
            setattr(self, name, attention)
        self.linear1 = Linear(d_model, dim_feedforward, **options)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, **options)
        self.norm_first = norm_first
        residuals = range(1, len(self._attentions) + 2)
        for i in residuals:
            setattr(self, f"norm{i}", LayerNorm(d_model, eps=layer_norm_eps, **options))
        for i in residuals:
            setattr(self, f"dropout{i}", Dropout(dropout))
        self.activation = _activation(activation)

    def _attend(self, attention: Module, x: Tensor, keys: Tensor, mask, padding, is_causal: bool) -> Tensor:
        options = {"attn_mask": mask, "key_padding_mask": padding, "need_weights": False}
        return attention(x, keys, keys, **options, is_causal=_is_causal(mask, is_causal))[0]

    def _network(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


class TransformerEncoderLayer(_Layer):
    """Self-attention, then a network of two layers, each with a residual and a norm.

    Returns:
        The input's shape. A split of the batch stays.

    Example:
        >>> layer = flow.nn.TransformerEncoderLayer(8, 2, dim_feedforward=16, batch_first=True)
        >>> layer(flow.ones(3, 5, 8)).shape
        sbpjax.Size([3, 5, 8])
    """

    __doc__ = InheritedDocstring(__doc__, _Layer)

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """Return the layer's output.

        Args:
            src: `(L, N, E)`, or `(N, L, E)` with `batch_first`, or `(L, E)`.
            src_mask: `(L, L)` or `(N H, L, L)`; true hides, numbers are added.
            src_key_padding_mask: `(N, L)`; true hides a key.
            is_causal: whether `src_mask` is the causal one.
        """
        own = (src_mask, src_key_padding_mask, is_causal)
        x = src
        if self.norm_first:
            normed = self.norm1(x)
            x = x + self.dropout1(self._attend(self.self_attn, normed, normed, *own))
            return x + self.dropout2(self._network(self.norm2(x)))
        x = self.norm1(x + self.dropout1(self._attend(self.self_attn, x, x, *own)))
        return self.norm2(x + self.dropout2(self._network(x)))


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to an encoder's output, then a network; each with a residual and a norm."""

    __doc__ = InheritedDocstring(__doc__, _Layer)
    _attentions = ("self_attn", "multihead_attn")

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Return the layer's output.

        Args:
            tgt: `(L, N, E)`, or `(N, L, E)` with `batch_first`, or `(L, E)`.
            memory: the encoder's output, `(S, N, E)` and so on.
            tgt_mask: `(L, L)`; true hides, numbers are added.
            memory_mask: `(L, S)`.
            tgt_key_padding_mask: `(N, L)`; true hides a key.
            memory_key_padding_mask: `(N, S)`.
            tgt_is_causal: whether `tgt_mask` is the causal one.
            memory_is_causal: whether `memory_mask` is the causal one.
        """
        own = (tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        other = (memory_mask, memory_key_padding_mask, memory_is_causal)
        x = tgt
        if self.norm_first:
            normed = self.norm1(x)
            x = x + self.dropout1(self._attend(self.self_attn, normed, normed, *own))
            x = x + self.dropout2(self._attend(self.multihead_attn, self.norm2(x), memory, *other))
            return x + self.dropout3(self._network(self.norm3(x)))
        x = self.norm1(x + self.dropout1(self._attend(self.self_attn, x, x, *own)))
        x = self.norm2(x + self.dropout2(self._attend(self.multihead_attn, x, memory, *other)))
        return self.norm3(x + self.dropout3(self._network(x)))


class TransformerEncoder(Module):
    """Stack of copies of an encoder layer.

    Args:
        encoder_layer: the layer.
        num_layers: how many.
        norm: a norm after the last, or None.
        enable_nested_tensor: accepted for compatibility; padding stays where it is.
        mask_check: accepted for compatibility.
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ):
        super().__init__()
        self.layers, self.num_layers, self.norm = _copies(encoder_layer, num_layers), num_layers, norm
        self.enable_nested_tensor, self.mask_check = enable_nested_tensor, mask_check

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """Return the last layer's output; arguments as of the layer."""
        options = {"src_mask": mask, "src_key_padding_mask": src_key_padding_mask, "is_causal": bool(is_causal)}
        for layer in self.layers:
            src = layer(src, **options)
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Module):
    """Stack of copies of a decoder layer.

    Args:
        decoder_layer: the layer.
        num_layers: how many.
        norm: a norm after the last, or None.
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None):
        super().__init__()
        self.layers, self.num_layers, self.norm = _copies(decoder_layer, num_layers), num_layers, norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Return the last layer's output; arguments as of the layer."""
        options = {
            "tgt_mask": tgt_mask,
            "memory_mask": memory_mask,
            "tgt_key_padding_mask": tgt_key_padding_mask,
            "memory_key_padding_mask": memory_key_padding_mask,
            "tgt_is_causal": bool(tgt_is_causal),
            "memory_is_causal": memory_is_causal,
        }
        for layer in self.layers:
            tgt = layer(tgt, memory, **options)
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """An encoder and a decoder.

    Args:
        d_model: E, the features.
        nhead: the number of heads.
        num_encoder_layers: the number of encoder layers.
        num_decoder_layers: the number of decoder layers.
        dim_feedforward: the features between the two layers of a network.
        dropout: probability of a zero.
        activation: ``"relu"``, ``"gelu"`` or a function.
        custom_encoder: a module instead of the encoder.
        custom_decoder: a module instead of the decoder.
        layer_norm_eps: eps of the norms.
        batch_first: `(N, L, E)` rather than `(L, N, E)`.
        norm_first: apply norms before attention and network.
        bias: whether linear layers and norms have one.
        device: where the parameters are made.
        dtype: their dtype.
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__()
        made = {"bias": bias, "device": device, "dtype": dtype}
        layer = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first)
        if custom_encoder is not None:
            self.encoder = custom_encoder
        else:
            norm = LayerNorm(d_model, eps=layer_norm_eps, **made)
            self.encoder = TransformerEncoder(TransformerEncoderLayer(*layer, **made), num_encoder_layers, norm)
        if custom_decoder is not None:
            self.decoder = custom_decoder
        else:
            norm = LayerNorm(d_model, eps=layer_norm_eps, **made)
            self.decoder = TransformerDecoder(TransformerDecoderLayer(*layer, **made), num_decoder_layers, norm)
        self._reset_parameters()
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Return the decoder's output for `tgt` `(T, N, E)`, given the encoder's of `src` `(S, N, E)`."""
        operation, seen = "Transformer(src, tgt)", f"src {tuple(src.shape)}, tgt {tuple(tgt.shape)}"
        batch = 0 if self.batch_first else 1
        if src.ndim == 3 and src.shape[batch] != tgt.shape[batch]:
            fail("shape", operation, seen, "the batch number of src and tgt must be equal", "one tgt per src")
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            rule = f"the feature number of src and tgt must be equal to d_model, {self.d_model}"
            fail("shape", operation, seen, rule, f"nn.Transformer({src.shape[-1]}, ...)")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """Return `(sz, sz)` with minus infinity above the diagonal: each position sees itself and earlier ones."""
        return creation.full((sz, sz), float("-inf"), device=device, dtype=dtype or dtypes.float32).triu(1)

    def _reset_parameters(self) -> None:
        for weight in self.parameters():
            if weight.ndim > 1:
                init.xavier_uniform_(weight)
