"""DLRM: click-through rate from the pairwise dot products of feature embeddings.

Source: Naumov et al., Deep Learning Recommendation Model, arXiv:1906.00091.
"""

from __future__ import annotations

import numpy as np

import sbpjax as flow

from .config import RecommendConfig
from .tables import Clicks, Tables, place_of, stack


class DLRM(Clicks):
    """Layers over the dot products of the features' vectors and the vector of the numbers.

    Args:
        config: the sizes.

    Example:
        >>> model = flow.models.recommend.DLRM(flow.models.recommend.RecommendConfig(features=(10, 20), dense=3))
        >>> model(flow.zeros(2, 3), flow.tensor([[9, 0], [3, 19]])).shape
        sbpjax.Size([2])
    """

    def __init__(self, config: RecommendConfig):
        super().__init__()
        self.config = config
        count = len(config.features) + 1
        # Below the diagonal: each pair of different vectors once.
        rows, columns = np.tril_indices(count, -1)
        self.pairs = tuple((rows * count + columns).tolist())
        self.tables = Tables(config.features, config.dim)
        self.bottom = stack((config.dense, *config.bottom, config.dim))
        self.top = stack((config.dim + len(self.pairs), *config.hidden, 1), last=True)

    def forward(self, dense: flow.Tensor, ids: flow.Tensor) -> flow.Tensor:
        """Return logits `(B,)` of numbers `(B, N)` and ids `(B, F)`."""
        numbers = self.bottom(dense)  # (B, D)
        vectors = flow.cat([numbers.unsqueeze(1), self.tables(ids)], 1)  # (B, F + 1, D)
        products = vectors @ vectors.transpose(1, 2)  # (B, F + 1, F + 1)
        pairs = products.flatten(1).index_select(1, flow.tensor(self.pairs, **place_of(self.tables.weight)))
        return self.top(flow.cat([numbers, pairs], 1)).squeeze(-1)
