"""Dropout layers, of single elements and of whole channels.

The mask is a function of the element's place in the logical tensor, so it is the same under every layout.
"""

from __future__ import annotations

from typing import Any

from sbpjax._core.functions import nn as F
from sbpjax._core.ops.dims import fail
from sbpjax._core.tensor import Tensor
from sbpjax.nn.module import Module


class _Dropout(Module):
    """Zero elements at random and scale the others by 1 / (1 - p).

    Args:
        p: the probability of a zero.
        inplace: write into the input.
        generator: draws the mask; the default one if not given.
    """

    def __init__(self, p: float = 0.5, inplace: bool = False, generator: Any = None):
        super().__init__()
        if not 0 <= p <= 1:
            rule = f"dropout probability has to be between 0 and 1, but got {p}"
            fail("value", f"{type(self).__name__}({p})", f"p={p}", rule, f"nn.{type(self).__name__}(0.5)")
        self.p, self.inplace, self.generator = p, inplace, generator

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_Dropout):
    """Zero single elements at random and scale the others by 1 / (1 - p).

    Args:
        p: the probability of a zero.
        inplace: write into the input.
        generator: draws the mask; the default one if not given.

    Returns:
        The input's shape and sbp; the mask does not depend on the sbp. In evaluation mode the input itself.

    Example:
        >>> x = flow.ones(4, 3).to_global(flow.placement("cpu", [0, 1]), flow.sbp.split(0))
        >>> layer = flow.nn.Dropout(0.5)
        >>> layer(x).sbp, layer.eval()(x)[0].tolist()
        ((sbpjax.sbp.split(dim=0),), [1.0, 1.0, 1.0])
    """

    def forward(self, input: Tensor, addend: Tensor | None = None) -> Tensor:
        return F.dropout(input, self.p, self.training, self.inplace, self.generator, addend=addend)


class Dropout1d(_Dropout):
    """Zero whole channels of `(N, C, L)` at random and scale the others by 1 / (1 - p).

    Args:
        p: the probability of a zero channel.
        inplace: write into the input.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout1d(input, self.p, self.training, self.inplace, self.generator)


class Dropout2d(_Dropout):
    """Zero whole channels of `(N, C, H, W)` at random and scale the others by 1 / (1 - p).

    Args:
        p: the probability of a zero channel.
        inplace: write into the input.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout2d(input, self.p, self.training, self.inplace, self.generator)


class Dropout3d(_Dropout):
    """Zero whole channels of `(N, C, D, H, W)` at random and scale the others by 1 / (1 - p).

    Args:
        p: the probability of a zero channel.
        inplace: write into the input.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout3d(input, self.p, self.training, self.inplace, self.generator)


class AlphaDropout(_Dropout):
    """Set elements to selu's lower limit at random, scaled to keep mean and variance.

    Args:
        p: the probability.
        inplace: write into the input.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.alpha_dropout(input, self.p, self.training, self.inplace, self.generator)


class FeatureAlphaDropout(_Dropout):
    """Set whole channels to selu's lower limit at random, scaled to keep mean and variance.

    Args:
        p: the probability.
        inplace: write into the input.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.feature_alpha_dropout(input, self.p, self.training, self.inplace, self.generator)
