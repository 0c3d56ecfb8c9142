"""Two-tower retrieval: embeddings of users and items, trained with in-batch negatives.

Source: Yi et al., Sampling-Bias-Corrected Neural Modeling for Large Corpus Item Recommendations, RecSys 2019.
"""

from __future__ import annotations

import sbpjax as flow
from sbpjax.nn import functional as F

from .config import RecommendConfig
from .tables import Clicks, Tables, place_of, stack


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
