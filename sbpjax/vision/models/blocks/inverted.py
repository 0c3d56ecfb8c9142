"""Inverted bottlenecks: the residual blocks of MobileNet v3 and EfficientNet.

    Stage("ir", 2, kernel=3, stride=2, expansion=6, channels=24)     # the first of two blocks has the stride

``ir`` expands by 1 x 1, convolves each channel by itself, and narrows by 1 x 1. ``ds`` does not expand. ``er`` expands
by a full convolution. ``cn`` is one convolution. Sources: arxiv.org/abs/1801.04381, 1905.02244, 1905.11946, 2104.00298.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import sbpjax as flow
from sbpjax import nn

from .activations import activation
from .conv import SameConv2d
from .drop_path import DropPath, rising
from .squeeze import SqueezeExcite, divisible


@dataclass(frozen=True)
class Stage:
    """A row of blocks.

    Attributes:
        kind: ``"ir"``, ``"ds"``, ``"er"`` or ``"cn"``.
        repeats: how many blocks.
        kernel: of the spatial convolution.
        stride: of the first block.
        expansion: channels inside, as a multiple of the input's.
        channels: of the output.
        squeeze: the part of the channels that squeeze and excite keeps; 0 for none.
        act: a name of `ACTIVATIONS`; None for the model's.
    """

    kind: str
    repeats: int
    kernel: int
    stride: int
    expansion: float
    channels: int
    squeeze: float = 0.0
    act: str | None = None


@dataclass(frozen=True)
class Style:
    """What the blocks of a model have in common.

    Attributes:
        act: activation of blocks whose stage names none.
        gate: of squeeze and excite.
        squeeze_act: between its two products; None for the block's.
        squeezed: channels that it keeps, of the channels inside, those of the input, and the part.
        same: whether convolutions are padded as TensorFlow pads.
        eps: of the norms.
        keeps_ones: whether a single convolution (``cn``) of equal size is added to its input.
    """

    act: str
    gate: str
    squeeze_act: str | None
    squeezed: Callable[[int, int, float], int]
    same: bool = False
    eps: float = 1e-5
    keeps_ones: bool = True

    def conv(self, inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> nn.Conv2d:
        """Return a convolution without bias."""
        if self.same and stride > 1:
            return SameConv2d(inputs, outputs, kernel, stride, groups=groups, bias=False)
        return nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, groups=groups, bias=False)


class Inverted(nn.Module):
    """One block of any kind: convolutions with a norm each, squeeze and excite before the last, and the input added.

    Args:
        stage: the row that it is of.
        style: the model's.
        inputs: channels of the input.
        stride: of the spatial convolution.
        drop_path: the probability that the branch is left out, in training.
    """

    def __init__(self, stage: Stage, style: Style, inputs: int, stride: int, drop_path: float):
        super().__init__()
        inside = inputs if stage.kind in ("ds", "cn") else divisible(inputs * stage.expansion)
        outputs, act = stage.channels, stage.act or style.act
        # (name, convolution) in order; timm's names.
        convolutions: dict[str, list[tuple[str, nn.Conv2d]]] = {
            "ir": [
                ("conv_pw", style.conv(inputs, inside, 1)),
                ("conv_dw", style.conv(inside, inside, stage.kernel, stride, inside)),
                ("conv_pwl", style.conv(inside, outputs, 1)),
            ],
            "ds": [
                ("conv_dw", style.conv(inside, inside, stage.kernel, stride, inside)),
                ("conv_pw", style.conv(inside, outputs, 1)),
            ],
            "er": [
                ("conv_exp", style.conv(inputs, inside, stage.kernel, stride)),
                ("conv_pwl", style.conv(inside, outputs, 1)),
            ],
            "cn": [("conv", style.conv(inputs, outputs, stage.kernel, stride))],
        }
        self.steps: list[tuple[str, str]] = []
        for number, (name, conv) in enumerate(convolutions[stage.kind], 1):
            if name == ("conv_pw" if stage.kind == "ds" else "conv_pwl") and stage.squeeze:
                reduced, names = style.squeezed(inside, inputs, stage.squeeze), ("conv_reduce", "conv_expand")
                self.se = SqueezeExcite(inside, reduced, style.squeeze_act or act, style.gate, names)
                self.steps.append(("se", ""))
            self.add_module(name, conv)
            self.add_module(f"bn{number}", nn.BatchNorm2d(conv.out_channels, eps=style.eps))
            self.steps.append((name, f"bn{number}"))
        self.act = activation(act)
        self.last_act = stage.kind == "cn"
        self.adds = stride == 1 and inputs == outputs and (stage.kind != "cn" or style.keeps_ones)
        self.drop_path = DropPath(drop_path)

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        """Return `(B, channels, H / stride, W / stride)` of `x` `(B, inputs, H, W)`."""
        y, last = x, self.steps[-1]
        for step in self.steps:
            name, norm = step
            y = getattr(self, name)(y)
            if norm:
                y = getattr(self, norm)(y)
                y = self.act(y) if step != last or self.last_act else y
        return x + self.drop_path(y) if self.adds else y


def inverted_stages(
    stages: Sequence[Stage], style: Style, inputs: int, drop_path_rate: float = 0.0
) -> Iterator[tuple[nn.Sequential, int]]:
    """Yield the blocks of each stage, and its stride.

    Args:
        stages: the rows.
        style: what they have in common.
        inputs: channels of the first one's input.
        drop_path_rate: of the last block; those before it have less.
    """
    for stage, rates in zip(stages, rising(drop_path_rate, [s.repeats for s in stages]), strict=True):
        row = []
        for i, rate in enumerate(rates):
            row.append(Inverted(stage, style, inputs, stage.stride if i == 0 else 1, rate))
            inputs = stage.channels
        yield nn.Sequential(*row), stage.stride
