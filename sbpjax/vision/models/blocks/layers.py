"""Layers of several families: activations, convolutions, stochastic depth, MLP, squeeze and excitation, heads."""

from __future__ import annotations

from collections.abc import Sequence

import sbpjax as flow
from sbpjax import nn
from sbpjax.nn import functional as F

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "relu": nn.ReLU,
    "relu6": nn.ReLU6,
    "silu": nn.SiLU,
    "gelu": nn.GELU,
    "none": nn.Identity,
}


def activation(name: str) -> nn.Module:
    """Return a new layer of an activation.

    Args:
        name: a key of `ACTIVATIONS`.

    Example:
        >>> from sbpjax.vision.models import blocks
        >>> blocks.activation("relu6")(flow.tensor([-1.0, 3.0, 9.0])).tolist()
        [0.0, 3.0, 6.0]
    """
    return ACTIVATIONS[name]()


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


class DropPath(nn.Module):
    """Stochastic depth: set whole images of a batch to zero, in training.

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


def drop_path_rates(last: float, depths: Sequence[int]) -> list[list[float]]:
    """Return the probability of each block of each stage, from 0 to `last` in even steps.

    Example:
        >>> from sbpjax.vision.models import blocks
        >>> blocks.drop_path_rates(0.3, [2, 2])
        [[0.0, 0.1], [0.2, 0.3]]
    """
    count, found, at = sum(depths), [], 0
    for depth in depths:
        found.append([round(last * i / max(count - 1, 1), 12) for i in range(at, at + depth)])
        at += depth
    return found


class PooledHead(nn.Module):
    """The mean over a map, and a linear layer on it.

    Args:
        features: C.
        num_classes: outputs; 0 hands on the mean.
        dim: the two dims of height and width: (2, 3) of `(B, C, H, W)`, (1, 2) of `(B, H, W, C)`.
        dropout: probability of a zero among the pooled features, in training.
        norm: a layer between the mean and the linear layer; its weights are called ``norm``.

    Example:
        >>> from sbpjax.vision.models import blocks
        >>> blocks.PooledHead(8, 10)(flow.zeros(2, 8, 7, 7)).shape
        sbpjax.Size([2, 10])
    """

    def __init__(
        self,
        features: int,
        num_classes: int,
        dim: tuple[int, int] = (2, 3),
        dropout: float = 0.0,
        norm: nn.Module | None = None,
    ):
        super().__init__()
        self.dim = dim
        self.norm = norm
        self.drop = nn.Dropout(dropout)
        self.fc = nn.Linear(features, num_classes) if num_classes else nn.Identity()

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        """Return `(B, num_classes)` of a map."""
        pooled = x.mean(self.dim)  # (B, C)
        pooled = pooled if self.norm is None else self.norm(pooled)
        return self.fc(self.drop(pooled))


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
    """``x * sigmoid(expand(act(reduce(mean of x))))``, a weight for each channel of each image.

    Args:
        channels: C.
        reduced: channels between the two products.
        act: between them, a name of `ACTIVATIONS`.
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
        names: tuple[str, str] = ("fc1", "fc2"),
        norm: bool = False,
    ):
        super().__init__()
        self.names = names
        self.add_module(names[0], nn.Conv2d(channels, reduced, 1))
        self.bn = nn.BatchNorm2d(reduced) if norm else None
        self.act = activation(act)
        self.add_module(names[1], nn.Conv2d(reduced, channels, 1))

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        """Return `(B, C, H, W)` of `x` `(B, C, H, W)`."""
        reduce, expand = (getattr(self, name) for name in self.names)
        weight = reduce(x.mean((2, 3), keepdim=True))  # (B, R, 1, 1)
        weight = weight if self.bn is None else self.bn(weight)
        return x * expand(self.act(weight)).sigmoid()
