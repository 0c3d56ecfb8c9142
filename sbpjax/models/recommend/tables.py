"""Parts of recommendation models: embedding table of all features, MLP, binary loss of clicks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import sbpjax as flow
from sbpjax import nn
from sbpjax.errors import OpValueError
from sbpjax.nn import functional as F


class Tables(nn.Module):
    """The tables of several features in one weight, `(sum of sizes, dim)`: feature f has rows from ``offsets[f]`` on.

    Args:
        sizes: how many ids each feature has.
        dim: the length of a row.
        std: rows are drawn from N(0, std); 0 for zeros.

    Example:
        >>> tables = flow.models.recommend.Tables((10, 20), 4)
        >>> tables(flow.tensor([[9, 0], [3, 19]])).shape
        sbpjax.Size([2, 2, 4])
    """

    def __init__(self, sizes: Sequence[int], dim: int, std: float = 0.05):
        super().__init__()
        self.sizes = tuple(sizes)
        self.offsets = (0, *accumulate(self.sizes))[:-1]
        self.weight = nn.Parameter(flow.zeros(sum(self.sizes), dim))
        if std:
            nn.init.normal_(self.weight, std=std)

    def forward(self, ids: flow.Tensor) -> flow.Tensor:
        """Return the vectors of ids: `(B, F)` integers, a column for each feature, to `(B, F, dim)`.

        An id beyond its feature's size is an error in eager code, and in a graph its vector is NaN, not another
        feature's.

        Raises:
            IndexError: an id is beyond its feature's size.
            ValueError: there are not as many columns as features, or ids are no integers.
        """
        if ids.ndim != 2 or ids.shape[1] != len(self.sizes) or ids.dtype not in (flow.int64, flow.int32):
            seen, count = f"ids {ids.dtype.name}{list(ids.shape)}", len(self.sizes)
            rule = f"ids are integers (batch, {count}), a column for each of the {count} features"
            raise OpValueError("Tables(ids)", seen, rule, f"ids.reshape(-1, {count}).long()")
        place = place_of(self.weight)
        offsets, sizes = (flow.tensor(x, dtype=ids.dtype, **place) for x in (self.offsets, self.sizes))
        # By products, not `where`, which a batch of free size has no form of in exports.
        inside = ((ids >= 0) & (ids < sizes)).to(ids.dtype)
        rows = (ids + offsets) * inside + self.weight.shape[0] * (1 - inside)
        return F.embedding(rows, self.weight, sparse=True)

    def extra_repr(self) -> str:
        """Return the sizes."""
        return f"{len(self.sizes)} features, {sum(self.sizes)} rows of {self.weight.shape[1]}"


def place_of(weight: flow.Tensor) -> dict:
    """Return where a small constant beside a weight lies, as keywords: on its devices, in every rank whole."""
    if not weight.is_global:
        return {"device": weight.device}
    return {"placement": weight.placement, "sbp": [flow.sbp.broadcast] * len(weight.placement.hierarchy)}


def stack(sizes: Sequence[int], last: bool = False) -> nn.Sequential:
    """Return linear layers with ReLU behind each; without one behind the last, if `last`."""
    layers: list[nn.Module] = []
    for i, (before, after) in enumerate(zip(sizes, sizes[1:])):
        layers.append(nn.Linear(before, after))
        if not last or i < len(sizes) - 2:
            layers.append(nn.ReLU())
    return nn.Sequential(*layers)


class Clicks(nn.Module):
    """Base of models of the probability of a click; a subclass defines ``forward(dense, ids)``, of logits."""

    def loss(self, dense: flow.Tensor, ids: flow.Tensor, labels: flow.Tensor) -> flow.Tensor:
        """Return the mean logistic loss.

        Args:
            dense: `(B, N)` numbers.
            ids: `(B, F)` integers.
            labels: `(B,)`, 0 or 1.
        """
        return F.binary_cross_entropy_with_logits(self(dense, ids), labels.float())

    def table_parameters(self) -> list[nn.Parameter]:
        """Return the tables, for an optimizer with sparse updates."""
        return [m.weight for m in self.modules() if isinstance(m, Tables)]

    def dense_parameters(self) -> list[nn.Parameter]:
        """Return all other parameters."""
        tables = {id(p) for p in self.table_parameters()}
        return [p for p in self.parameters() if id(p) not in tables]
