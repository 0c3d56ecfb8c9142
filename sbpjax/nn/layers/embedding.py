"""Embedding layers: `Embedding` looks up rows of a table, `EmbeddingBag` reduces them per bag."""

from __future__ import annotations

from typing import Any

from sbpjax._core.functions import nn as F
from sbpjax._core.ops.dims import fail
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.tape.grad_mode import no_grad
from sbpjax.nn import init
from sbpjax.nn.module import Module
from sbpjax.nn.parameter import Parameter, parameter


class Embedding(Module):
    """Look up rows of a learned table.

    `weight` is `(num_embeddings, embedding_dim)`. ``split(0)`` divides the vocabulary over the ranks: each looks up its
    own rows, the result is a partial sum. ``split(1)`` divides the features.

    Args:
        num_embeddings: the number of rows.
        embedding_dim: the size of a row.
        padding_idx: a row that starts at zero and gets no gradient.
        max_norm: rows that are looked up are scaled down to this norm first, in place.
        norm_type: p of that norm.
        scale_grad_by_freq: divide each row's gradient by its count in the batch.
        sparse: the gradient is one of rows: ``weight.grad`` holds the numbers that were looked up and a row for each,
            and an optimizer with sparse updates reads and writes these rows alone, so that a step costs the same
            however large the table is. Others make it dense.
        _weight: a table to start from.
        device: where the table is made.
        dtype: its dtype.

    Example:
        >>> p = flow.placement("cpu", [0, 1])
        >>> layer = flow.nn.Embedding(8, 4).to_global(p, flow.sbp.split(0))
        >>> y = layer(flow.tensor([[1, 7]]).to_global(p, flow.sbp.broadcast))
        >>> y.shape, y.sbp
        (sbpjax.Size([1, 2, 4]), (sbpjax.sbp.partial_sum,))
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                fail(
                    "assertion",
                    f"Embedding({num_embeddings}, {embedding_dim})",
                    f"padding_idx={padding_idx}",
                    f"Padding_idx must be within num_embeddings, {padding_idx} within {num_embeddings}",
                    f"padding_idx in [{-num_embeddings}, {num_embeddings})",
                )
            padding_idx %= num_embeddings
        self.padding_idx = padding_idx
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse
        if _weight is None:
            self.weight = parameter(num_embeddings, embedding_dim, device=device, dtype=dtype)
            self.reset_parameters()
        else:
            if tuple(_weight.shape) != (num_embeddings, embedding_dim):
                fail(
                    "assertion",
                    f"Embedding({num_embeddings}, {embedding_dim})",
                    f"a weight of shape {list(_weight.shape)}",
                    "Shape of weight does not match num_embeddings and embedding_dim",
                    "Embedding.from_pretrained(weight)",
                )
            self.weight = Parameter(_weight)

    def reset_parameters(self) -> None:
        """Draw the table anew from N(0, 1)."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx] = 0

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse
        )

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.padding_idx is not None:
            text += f", padding_idx={self.padding_idx}"
        if self.max_norm is not None:
            text += f", max_norm={self.max_norm}"
        if self.norm_type != 2:
            text += f", norm_type={self.norm_type}"
        if self.scale_grad_by_freq:
            text += ", scale_grad_by_freq=True"
        if self.sparse:
            text += ", sparse=True"
        return text

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, padding_idx: int | None = None) -> Embedding:
        """Return a layer over a given `(rows, features)` table, frozen by default.

        Raises:
            OpAssertionError: the table has not two dims, or `padding_idx` is outside it.
        """
        if embeddings.ndim != 2:
            fail(
                "assertion",
                "Embedding.from_pretrained(embeddings)",
                f"shape {list(embeddings.shape)}",
                "Embeddings parameter is expected to be 2-dimensional",
                "embeddings.reshape(rows, features)",
            )
        layer = cls(*embeddings.shape, padding_idx=padding_idx, _weight=embeddings)
        layer.weight.requires_grad_(not freeze)
        return layer


class EmbeddingBag(Module):
    """Look up rows of a learned table and reduce them per bag.

    Args:
        num_embeddings: the number of rows.
        embedding_dim: the size of a row.
        max_norm: rows that are looked up are scaled down to this norm first, in place.
        norm_type: p of that norm.
        scale_grad_by_freq: divide each row's gradient by its count in the batch.
        mode: ``"sum"``, ``"mean"`` or ``"max"``.
        sparse: the gradient is one of rows, see `Embedding`.
        _weight: a table to start from.
        include_last_offset: the last offset is the end of the last bag.
        padding_idx: a row that starts at zero, does not count and gets no gradient.
        device: where the table is made.
        dtype: its dtype.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__()
        options = {"padding_idx": padding_idx, "_weight": _weight, "device": device, "dtype": dtype}
        table = Embedding(num_embeddings, embedding_dim, **options)
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.max_norm, self.norm_type, self.scale_grad_by_freq = max_norm, norm_type, scale_grad_by_freq
        self.mode, self.sparse, self.include_last_offset = mode, sparse, include_last_offset
        self.padding_idx, self.weight = table.padding_idx, table.weight

    def reset_parameters(self) -> None:
        """Draw the table anew from N(0, 1)."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx] = 0

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        """Return one reduced row per bag.

        Args:
            input: integers `(B, K)`, each row a bag, or `(L,)` with offsets.
            offsets: `(B,)`, where each bag begins in a 1-d input.
            per_sample_weights: of the input's shape, factors of the rows; sums only.
        """
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.max_norm is not None:
            text += f", max_norm={self.max_norm}"
        if self.norm_type != 2:
            text += f", norm_type={self.norm_type}"
        if self.scale_grad_by_freq is not False:
            text += f", scale_grad_by_freq={self.scale_grad_by_freq}"
        text += f", mode={self.mode!r}"
        return text if self.padding_idx is None else f"{text}, padding_idx={self.padding_idx}"

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, **options: Any) -> EmbeddingBag:
        """Return a layer over a given `(rows, features)` table, frozen by default; options as of the class."""
        if embeddings.ndim != 2:
            fail(
                "value",
                "EmbeddingBag.from_pretrained(embeddings)",
                f"shape {list(embeddings.shape)}",
                "Embeddings parameter is expected to be 2-dimensional",
                "embeddings.reshape(rows, features)",
            )
        layer = cls(*embeddings.shape, _weight=embeddings, **options)
        layer.weight.requires_grad_(not freeze)
        return layer
