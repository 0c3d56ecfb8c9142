"""Stochastic depth: drops a residual branch for random images of a batch, in training.

With probability p an image's branch is zero; the others are divided by 1 - p, so that the mean stays. Blocks farther
back are left out more often: `rising` gives each its own p. Which images these are depends on the seed and the image's
place in the whole batch, not on how the batch is divided over devices.
"""

from __future__ import annotations

from collections.abc import Sequence

import sbpjax as flow
from sbpjax import nn
from sbpjax.nn import functional as F


class DropPath(nn.Module):
    """Set whole images of a batch to zero, in training.

    Args:
        p: the probability of a zero.

    Example:
        >>> from sbpjax.vision.models import blocks
        >>> layer = blocks.DropPath(0.5)
        >>> sorted(set(layer(flow.ones(64, 3)).flatten().tolist())), layer.eval()(flow.ones(1, 2)).tolist()
        ([0.0, 2.0], [[1.0, 1.0]])
    """

    def __init__(self, p: float = 0.0):
        super().__init__()
        self.p = p

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        """Return `x` `(B, ...)`, of the same sbp."""
        if self.p == 0.0 or not self.training:
            return x
        kept = F.dropout(x.new_ones((x.shape[0], *[1] * (x.ndim - 1))), self.p)  # of the layout of x
        return x * kept

    def extra_repr(self) -> str:
        """Return the arguments of the layer that a printed model shows."""
        return f"p={self.p}"


def rising(last: float, depths: Sequence[int]) -> list[list[float]]:
    """Return the probability of each block of each stage, from 0 to `last` in even steps.

    Example:
        >>> from sbpjax.vision.models import blocks
        >>> blocks.rising(0.3, [2, 2])
        [[0.0, 0.1], [0.2, 0.3]]
    """
    count, found, at = sum(depths), [], 0
    for depth in depths:
        found.append([round(last * i / max(count - 1, 1), 12) for i in range(at, at + depth)])
        at += depth
    return found
