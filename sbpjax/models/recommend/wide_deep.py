"""Wide & Deep: click-through rate by a linear model beside an MLP.

Source: Cheng et al., Wide & Deep Learning for Recommender Systems, arXiv:1606.07792.
"""

from __future__ import annotations

import sbpjax as flow
from sbpjax import nn

from .config import RecommendConfig
from .tables import Clicks, Tables, stack


class WideDeep(Clicks):
    """The sum of a linear model of all features and a stack of layers over their vectors.

    Crossed features, which the linear part lives by, are features like others: see `sbpjax.train.data.crossed`.

    Args:
        config: the sizes.

    Example:
        >>> model = flow.models.recommend.WideDeep(flow.models.recommend.RecommendConfig(features=(10, 20), dense=3))
        >>> model(flow.zeros(2, 3), flow.tensor([[9, 0], [3, 19]])).shape
        sbpjax.Size([2])
    """

    def __init__(self, config: RecommendConfig):
        super().__init__()
        self.config = config
        self.wide = Tables(config.features, 1, std=0.0)
        self.wide_dense = nn.Linear(config.dense, 1)
        self.deep = Tables(config.features, config.dim)
        self.layers = stack((len(config.features) * config.dim + config.dense, *config.hidden, 1), last=True)

    def forward(self, dense: flow.Tensor, ids: flow.Tensor) -> flow.Tensor:
        """Return logits `(B,)` of numbers `(B, N)` and ids `(B, F)`."""
        wide = self.wide(ids).flatten(1).sum(1) + self.wide_dense(dense).squeeze(-1)
        deep = self.layers(flow.cat([self.deep(ids).flatten(1), dense], 1)).squeeze(-1)
        return wide + deep
