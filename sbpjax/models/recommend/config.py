"""`RecommendConfig`: table sizes and layer widths of a recommendation model."""

from __future__ import annotations

from dataclasses import dataclass

from sbpjax.errors import ConfigError
from sbpjax.utils.host import explain_arguments


@explain_arguments
@dataclass(frozen=True, kw_only=True)
class RecommendConfig:
    """The sizes of a recommender; a model ignores the fields that it does not use.

    Attributes:
        features: of each categorical feature, how many ids it has.
        items: how many of the features, from the last, are of the item: for `TwoTower`.
        dense: how many numbers there are beside them.
        dim: the length of a feature's vector.
        bottom: hidden layers for the numbers, before `dim`: of `DLRM`.
        hidden: hidden layers behind vectors and numbers.
        crosses: layers of products: of `DCN`.
        rank: of the matrices of these layers; 0 for whole ones.
        temperature: of the softmax of `TwoTower`.

    Raises:
        ConfigError: a size is below what it can be.

    Example:
        >>> flow.models.recommend.RecommendConfig(features=(1000, 20)).rows
        1020
    """

    features: tuple[int, ...]
    items: int = 1
    dense: int = 13
    dim: int = 16
    bottom: tuple[int, ...] = (64,)
    hidden: tuple[int, ...] = (128, 64)
    crosses: int = 2
    rank: int = 0
    temperature: float = 0.1

    def __post_init__(self) -> None:
        sizes = {"dense": (self.dense, 0), "dim": (self.dim, 1), "crosses": (self.crosses, 0), "rank": (self.rank, 0)}
        sizes |= {f"features[{i}]": (n, 1) for i, n in enumerate(self.features)}
        sizes |= {f"hidden[{i}]": (n, 1) for i, n in enumerate((*self.hidden, *self.bottom))}
        for name, (value, least) in sizes.items():
            if value < least:
                rule = f"{name} is at least {least}"
                raise ConfigError("RecommendConfig(...)", f"{name}={value}", rule, f"{name}={least}")
        if not self.features:
            raise ConfigError("RecommendConfig(...)", "features=()", "a recommender has a feature", "features=(1000,)")
        if not 0 < self.temperature:
            seen, rule = f"temperature={self.temperature}", "logits are divided by a temperature above 0"
            raise ConfigError("RecommendConfig(...)", seen, rule, "temperature=0.1")

    @property
    def rows(self) -> int:
        """How many rows the tables of all features have."""
        return sum(self.features)
