"""DCN-v2: click-through rate by cross layers beside an MLP.

Source: Wang et al., DCN V2, arXiv:2008.13535.
"""

from __future__ import annotations

import sbpjax as flow
from sbpjax import nn

from .config import RecommendConfig
from .tables import Clicks, Tables, stack


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
    """Crosses and a stack of layers side by side over vectors and numbers.

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
