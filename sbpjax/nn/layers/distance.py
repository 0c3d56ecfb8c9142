"""Distance layers: `CosineSimilarity`, `PairwiseDistance`."""

from __future__ import annotations

from sbpjax._core.functions import nn as F
from sbpjax._core.tensor import Tensor
from sbpjax.nn.module import Module


class CosineSimilarity(Module):
    """The cosine of the angle between two tensors along a dim.

    Args:
        dim: the dim of the vectors.
        eps: each norm counts as at least this.
    """

    def __init__(self, dim: int = 1, eps: float = 1e-8):
        super().__init__()
        self.dim, self.eps = dim, eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """The p-norm of x1 - x2 + eps over the last dim.

    Args:
        p: the norm.
        eps: added to the differences.
        keepdim: keep the last dim with size 1.
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False):
        super().__init__()
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)
