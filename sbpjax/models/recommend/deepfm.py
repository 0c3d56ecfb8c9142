"""DeepFM: click-through rate by a factorization machine beside an MLP.

Source: Guo et al., DeepFM, arXiv:1703.04247.
"""

from __future__ import annotations

import sbpjax as flow
from sbpjax import nn

from .config import RecommendConfig
from .tables import Clicks, Tables, stack


class DeepFM(Clicks):
    """The sum of a linear model, all products of two vectors, and a stack of layers.

    Args:
        config: the sizes.

    Example:
        >>> model = flow.models.recommend.DeepFM(flow.models.recommend.RecommendConfig(features=(10, 20), dense=3))
        >>> model(flow.zeros(2, 3), flow.tensor([[9, 0], [3, 19]])).shape
        sbpjax.Size([2])
    """

    def __init__(self, config: RecommendConfig):
        super().__init__()
        self.config = config
        self.first = Tables(config.features, 1, std=0.0)
        self.first_dense = nn.Linear(config.dense, 1)
        self.tables = Tables(config.features, config.dim)
        self.layers = stack((len(config.features) * config.dim + config.dense, *config.hidden, 1), last=True)

    def forward(self, dense: flow.Tensor, ids: flow.Tensor) -> flow.Tensor:
        """Return logits `(B,)` of numbers `(B, N)` and ids `(B, F)`."""
        vectors = self.tables(ids)  # (B, F, D)
        linear = self.first(ids).flatten(1).sum(1) + self.first_dense(dense).squeeze(-1)
        # All pairs at once: the square of a sum has every product twice, and the squares.
        pairs = (vectors.sum(1).square() - vectors.square().sum(1)).sum(-1) / 2
        deep = self.layers(flow.cat([vectors.flatten(1), dense], 1)).squeeze(-1)
        return linear + pairs + deep
