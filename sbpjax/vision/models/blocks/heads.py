"""`PooledHead`: classification head: global pooling, dropout, linear layer."""

from __future__ import annotations

import sbpjax as flow
from sbpjax import nn


class PooledHead(nn.Module):
    """The mean over a map, and a linear layer on it.

    Args:
        features: C.
        num_classes: outputs; 0 hands on the mean.
        dim: the two dims of height and width: (2, 3) of `(B, C, H, W)`, (1, 2) of `(B, H, W, C)`.
        dropout: probability of a zero among the pooled features, in training.
        norm: a layer between the mean and the linear layer; its weights are called ``norm``.

    Example:
        >>> from sbpjax.vision.models import blocks
        >>> blocks.PooledHead(8, 10)(flow.zeros(2, 8, 7, 7)).shape
        sbpjax.Size([2, 10])
    """

    def __init__(
        self,
        features: int,
        num_classes: int,
        dim: tuple[int, int] = (2, 3),
        dropout: float = 0.0,
        norm: nn.Module | None = None,
    ):
        super().__init__()
        self.dim = dim
        self.norm = norm
        self.drop = nn.Dropout(dropout)
        self.fc = nn.Linear(features, num_classes) if num_classes else nn.Identity()

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        """Return `(B, num_classes)` of a map."""
        pooled = x.mean(self.dim)  # (B, C)
        pooled = pooled if self.norm is None else self.norm(pooled)
        return self.fc(self.drop(pooled))
