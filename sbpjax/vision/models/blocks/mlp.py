"""MLP of transformer blocks, norm over channels, and truncated-normal initialisation."""

from __future__ import annotations

import sbpjax as flow
from sbpjax import nn
from sbpjax.nn import functional as F

from .activations import activation


def truncated_weights(model: nn.Module, std: float = 0.02) -> None:
    """Draw products and convolutions of a model anew from a normal distribution cut off at ±2; biases are 0."""
    for module in model.modules():
        if isinstance(module, (nn.Linear, nn.Conv2d)):
            nn.init.trunc_normal_(module.weight, std=std)
            if module.bias is not None:
                nn.init.zeros_(module.bias)


class MLP(nn.Module):
    """``fc2(act(fc1(x)))`` over the last dim.

    Args:
        width: D.
        hidden: between the two products.
        act: a name of `ACTIVATIONS`.
        dropout: probability of a zero behind each product, in training.

    Example:
        >>> from sbpjax.vision.models import blocks
        >>> blocks.MLP(8, 32)(flow.zeros(2, 5, 8)).shape
        sbpjax.Size([2, 5, 8])
    """

    def __init__(self, width: int, hidden: int, act: str = "gelu", dropout: float = 0.0):
        super().__init__()
        self.fc1 = nn.Linear(width, hidden)
        self.act = activation(act)
        self.drop = nn.Dropout(dropout)
        self.fc2 = nn.Linear(hidden, width)

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        """Return `(..., D)` of `x` `(..., D)`."""
        return self.drop(self.fc2(self.drop(self.act(self.fc1(x)))))


class ChannelNorm(nn.LayerNorm):
    """Layer norm over the channels of each place of a map `(B, C, H, W)`.

    Example:
        >>> from sbpjax.vision.models import blocks
        >>> blocks.ChannelNorm(2)(flow.tensor([[[[1.0]], [[3.0]]]])).flatten().round().tolist()
        [-1.0, 1.0]
    """

    def forward(self, input: flow.Tensor) -> flow.Tensor:
        """Return `(B, C, H, W)`."""
        last = input.permute(0, 2, 3, 1)
        return F.layer_norm(last, self.normalized_shape, self.weight, self.bias, self.eps).permute(0, 3, 1, 2)
