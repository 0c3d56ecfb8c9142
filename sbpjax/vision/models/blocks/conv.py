"""Convolution with norm and activation, and convolution with TensorFlow's "same" padding."""

from __future__ import annotations

import sbpjax as flow
from sbpjax import nn
from sbpjax.nn import functional as F

from .activations import activation


def kaiming_convolutions(model: nn.Module) -> None:
    """Draw the convolutions of a model anew, so that gradients keep their size through ReLUs; biases are 0."""
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            if module.bias is not None:
                nn.init.zeros_(module.bias)


class ConvNorm(nn.Module):
    """``act(bn(conv(x)))``, padded to the same size where `stride` is 1.

    Args:
        inputs: channels of the input.
        outputs: channels of the output.
        kernel: height and width of the kernel, odd.
        stride: of the convolution.
        groups: of the convolution.
        act: a name of `ACTIVATIONS`.

    Example:
        >>> from sbpjax.vision.models import blocks
        >>> blocks.ConvNorm(3, 8, 3, stride=2)(flow.zeros(1, 3, 8, 8)).shape
        sbpjax.Size([1, 8, 4, 4])
    """

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1, act: str = "relu"):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, groups=groups, bias=False)
        self.bn = nn.BatchNorm2d(outputs)
        self.act = activation(act)

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        """Return `(B, outputs, H / stride, W / stride)` of `x` `(B, inputs, H, W)`."""
        return self.act(self.bn(self.conv(x)))


class SameConv2d(nn.Conv2d):
    """A convolution padded as TensorFlow pads: as little as gives ``ceil(size / stride)``, the odd cell behind.

    The parameters are those of `nn.Conv2d`; `padding` is not read.

    Example:
        >>> from sbpjax.vision.models import blocks
        >>> blocks.SameConv2d(3, 4, 3, stride=2, bias=False)(flow.zeros(1, 3, 7, 8)).shape
        sbpjax.Size([1, 4, 4, 4])
    """

    def forward(self, input: flow.Tensor) -> flow.Tensor:
        """Return the convolution of `input` `(B, C, H, W)`."""
        sides: list[int] = []
        for dim in (1, 0):  # of the last dim first
            size, stride, kernel = input.shape[2 + dim], self.stride[dim], self.kernel_size[dim]
            lacking = max((-(-size // stride) - 1) * stride + (kernel - 1) * self.dilation[dim] + 1 - size, 0)
            sides += [lacking // 2, lacking - lacking // 2]
        input = F.pad(input, sides) if any(sides) else input
        return F.conv2d(input, self.weight, self.bias, self.stride, 0, self.dilation, self.groups)
