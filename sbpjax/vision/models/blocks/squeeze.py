"""Squeeze and excitation: channel attention from globally pooled features. Source: arxiv.org/abs/1709.01507."""

from __future__ import annotations

import sbpjax as flow
from sbpjax import nn

from .activations import activation


def divisible(channels: float, by: int = 8, least: float = 0.9) -> int:
    """Return the multiple of `by` nearest to a number of channels, and not below `least` of it.

    Example:
        >>> from sbpjax.vision.models import blocks
        >>> blocks.divisible(33.6), blocks.divisible(12), blocks.divisible(11)
        (32, 16, 16)
    """
    found = max(by, int(channels + by / 2) // by * by)
    return found + by if found < least * channels else found


class SqueezeExcite(nn.Module):
    """``x * gate(expand(act(reduce(mean of x))))``, a weight for each channel of each image.

    Args:
        channels: C.
        reduced: channels between the two products.
        act: between them, a name of `ACTIVATIONS`.
        gate: behind them.
        names: the attributes of the two products, and so the names of their weights.
        norm: whether the reduced channels are normalised over the batch, under the name ``bn``.

    Example:
        >>> from sbpjax.vision.models import blocks
        >>> blocks.SqueezeExcite(16, 4)(flow.ones(2, 16, 5, 5)).shape
        sbpjax.Size([2, 16, 5, 5])
    """

    def __init__(
        self,
        channels: int,
        reduced: int,
        act: str = "relu",
        gate: str = "sigmoid",
        names: tuple[str, str] = ("fc1", "fc2"),
        norm: bool = False,
    ):
        super().__init__()
        self.names = names
        self.add_module(names[0], nn.Conv2d(channels, reduced, 1))
        self.bn = nn.BatchNorm2d(reduced) if norm else None
        self.act, self.gate = activation(act), activation(gate)
        self.add_module(names[1], nn.Conv2d(reduced, channels, 1))

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        """Return `(B, C, H, W)` of `x` `(B, C, H, W)`."""
        reduce, expand = (getattr(self, name) for name in self.names)
        weight = reduce(x.mean((2, 3), keepdim=True))  # (B, R, 1, 1)
        weight = weight if self.bn is None else self.bn(weight)
        return x * self.gate(expand(self.act(weight)))
