"""Recommendation models: Wide & Deep, DeepFM, DCN-v2, DLRM for clicks, two towers for retrieval.

Sources: arXiv:1606.07792 (Wide & Deep), 1703.04247 (DeepFM), 2008.13535 (DCN-v2), 1906.00091 (DLRM); Yi et al.,
Sampling-Bias-Corrected Neural Modeling for Large Corpus Item Recommendations, RecSys 2019 (two towers).
"""

from __future__ import annotations

import numpy as np

import sbpjax as flow
from sbpjax import nn
from sbpjax.nn import functional as F

from .config import RecommendConfig
from .tables import Clicks, Tables, place_of, stack


class WideDeep(Clicks):
    """Wide & Deep: the sum of a linear model of all features and an MLP over their embeddings.

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


class DeepFM(Clicks):
    """DeepFM: the sum of a linear model, the pairwise products of embeddings, and an MLP.

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


class Cross(nn.Module):
    """``x0 · (W x + b) + x``: each layer raises the degree of the products of inputs by one.

    Args:
        width: the length of x.
        rank: of W, as a product of two matrices; 0 for a whole one.
    """

    def __init__(self, width: int, rank: int = 0):
        super().__init__()
        self.down = nn.Linear(width, rank, bias=False) if rank else None
        self.weight = nn.Linear(rank or width, width)

    def forward(self, first: flow.Tensor, x: flow.Tensor) -> flow.Tensor:
        """Return `(B, W)` of the input of all layers and that of this one, both `(B, W)`."""
        return first * self.weight(x if self.down is None else self.down(x)) + x


class DCN(Clicks):
    """DCN-v2: cross layers and an MLP, in parallel, over embeddings and dense features.

    Args:
        config: the sizes.

    Example:
        >>> model = flow.models.recommend.DCN(flow.models.recommend.RecommendConfig(features=(10, 20), dense=3))
        >>> model(flow.zeros(2, 3), flow.tensor([[9, 0], [3, 19]])).shape
        sbpjax.Size([2])
    """

    def __init__(self, config: RecommendConfig):
        super().__init__()
        self.config = config
        width = len(config.features) * config.dim + config.dense
        self.tables = Tables(config.features, config.dim)
        self.crosses = nn.ModuleList(Cross(width, config.rank) for _ in range(config.crosses))
        self.layers = stack((width, *config.hidden))
        self.head = nn.Linear(width + (config.hidden[-1] if config.hidden else width), 1)

    def forward(self, dense: flow.Tensor, ids: flow.Tensor) -> flow.Tensor:
        """Return logits `(B,)` of numbers `(B, N)` and ids `(B, F)`."""
        first = x = flow.cat([self.tables(ids).flatten(1), dense], 1)  # (B, W)
        for cross in self.crosses:
            x = cross(first, x)
        return self.head(flow.cat([x, self.layers(first)], 1)).squeeze(-1)


class DLRM(Clicks):
    """DLRM: an MLP over the dot products of the features' embeddings and the embedded dense features.

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


class TwoTower(Clicks):
    """Retrieval: a user's vector and an item's, each of its features alone, of length 1.

    Items' vectors are computed once and searched by dot products.

    Args:
        config: the sizes; its last `items` features are those of the item, the others and the numbers the user's.

    Example:
        >>> model = flow.models.recommend.TwoTower(flow.models.recommend.RecommendConfig(features=(10, 20), dense=3))
        >>> users, items = model(flow.zeros(2, 3), flow.tensor([[9, 0], [3, 19]]))
        >>> users.shape, items.shape
        (sbpjax.Size([2, 64]), sbpjax.Size([2, 64]))
    """

    def __init__(self, config: RecommendConfig):
        super().__init__()
        self.config = config
        cut = len(config.features) - config.items
        users, items = config.features[:cut], config.features[cut:]
        self.user_tables, self.item_tables = Tables(users, config.dim), Tables(items, config.dim)
        self.user = stack((len(users) * config.dim + config.dense, *config.hidden), last=True)
        self.item = stack((len(items) * config.dim, *config.hidden), last=True)

    def users(self, dense: flow.Tensor, ids: flow.Tensor) -> flow.Tensor:
        """Return users' vectors `(B, H)` of numbers `(B, N)` and ids of their features."""
        return F.normalize(self.user(flow.cat([self.user_tables(ids).flatten(1), dense], 1)))

    def items(self, ids: flow.Tensor) -> flow.Tensor:
        """Return items' vectors `(B, H)` of ids of their features."""
        return F.normalize(self.item(self.item_tables(ids).flatten(1)))

    def forward(self, dense: flow.Tensor, ids: flow.Tensor) -> tuple[flow.Tensor, flow.Tensor]:
        """Return vectors of users and of items of numbers `(B, N)` and ids `(B, F)`."""
        cut = len(self.config.features) - self.config.items
        return self.users(dense, ids[:, :cut]), self.items(ids[:, cut:])

    def loss(self, dense: flow.Tensor, ids: flow.Tensor, log_frequency: flow.Tensor | None = None) -> flow.Tensor:
        """Return the mean cross entropy of each user's item among the batch's items.

        Args:
            dense: `(B, N)` numbers.
            ids: `(B, F)` integers: of each row a user and an item that he took.
            log_frequency: `(B,)`, the logarithm of how often each item comes up; taken off the logits, so that what is
                popular is not punished for being a negative of all others.
        """
        users, items = self(dense, ids)
        logits = users @ items.t() / self.config.temperature  # (B, B)
        if log_frequency is not None:
            logits = logits - log_frequency
        return F.cross_entropy(logits, flow.arange(logits.shape[0], **place_of(self.item_tables.weight)))
