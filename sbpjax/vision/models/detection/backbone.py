"""ResNet backbone with frozen batch norms, and feature pyramid; parameters have torchvision's names."""

from __future__ import annotations

import sbpjax as flow
from sbpjax import Tensor, nn
from sbpjax.errors import ConfigError
from sbpjax.nn import functional as F

_DEPTHS = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3), 101: (3, 4, 23, 3)}


class FrozenBatchNorm2d(nn.Module):
    """A batch norm with fixed statistics and weights: a constant factor and shift for each channel.

    Args:
        channels: how many.
        eps: added to the variance.
    """

    def __init__(self, channels: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        for name, value in (("weight", 1.0), ("bias", 0.0), ("running_mean", 0.0), ("running_var", 1.0)):
            self.register_buffer(name, flow.full((channels,), value))

    def forward(self, x: Tensor) -> Tensor:
        """Return ``(B, channels, H, W)``."""
        factor = self.weight * (self.running_var + self.eps).rsqrt()
        shift = self.bias - self.running_mean * factor
        return x * factor.reshape(1, -1, 1, 1) + shift.reshape(1, -1, 1, 1)


class _Block(nn.Module):
    """Two convolutions of 3 × 3, or three that narrow the middle one, beside a short cut.

    Args:
        channels: in.
        width: of the middle.
        stride: of the convolution of 3 × 3, the first of two.
        narrow: whether there are three, with four times the width out.
    """

    def __init__(self, channels: int, width: int, stride: int, narrow: bool) -> None:
        super().__init__()
        out = 4 * width if narrow else width
        sizes = [(channels, width, 1, 1), (width, width, 3, stride), (width, out, 1, 1)] if narrow else \
                [(channels, width, 3, stride), (width, width, 3, 1)]  # fmt: skip
        self.count = len(sizes)
        for i, (a, b, kernel, step) in enumerate(sizes, 1):
            setattr(self, f"conv{i}", nn.Conv2d(a, b, kernel, step, kernel // 2, bias=False))
            setattr(self, f"bn{i}", FrozenBatchNorm2d(b))
        self.downsample = None
        if stride != 1 or channels != out:
            self.downsample = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), FrozenBatchNorm2d(out))

    def forward(self, x: Tensor) -> Tensor:
        """Return the sum."""
        short = x if self.downsample is None else self.downsample(x)
        for i in range(1, self.count + 1):
            x = getattr(self, f"bn{i}")(getattr(self, f"conv{i}")(x))
            x = F.relu(x) if i < self.count else x
        return F.relu(x + short)


class ResNetBody(nn.Module):
    """The stages of a ResNet.

    Args:
        depth: 18, 34, 50 or 101.

    Raises:
        ConfigError: it is another.
    """

    def __init__(self, depth: int) -> None:
        super().__init__()
        if depth not in _DEPTHS:
            rule = f"a depth is one of {', '.join(map(str, _DEPTHS))}"
            raise ConfigError(f"ResNetBody({depth})", f"{depth}", rule, "depth=50")
        narrow = depth >= 50
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = FrozenBatchNorm2d(64)
        channels = 64
        self.widths = []
        for i, blocks in enumerate(_DEPTHS[depth]):
            width = 64 * 2**i
            stage = []
            for j in range(blocks):
                stage.append(_Block(channels, width, 2 if i and not j else 1, narrow))
                channels = 4 * width if narrow else width
            setattr(self, f"layer{i + 1}", nn.Sequential(*stage))
            self.widths.append(channels)

    def forward(self, x: Tensor) -> list[Tensor]:
        """Return the answers of the four stages, at 1/4 to 1/32 of the image's size."""
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        found = []
        for i in range(1, 5):
            x = getattr(self, f"layer{i}")(x)
            found.append(x)
        return found


class _ExtraLevels(nn.Module):
    """Two more levels, each half as large."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.p6 = nn.Conv2d(width, width, 3, 2, 1)
        self.p7 = nn.Conv2d(width, width, 3, 2, 1)

    def forward(self, x: Tensor) -> list[Tensor]:
        """Return both."""
        x = self.p6(x)
        return [x, self.p7(F.relu(x))]


class Pyramid(nn.Module):
    """Feature pyramid: levels of equal width, each combined with the coarser levels.

    Args:
        channels: of the stages that go in.
        width: of all levels.
        further: whether there are two more levels, coarser ones.
    """

    def __init__(self, channels: list[int], width: int, further: bool = True) -> None:
        super().__init__()
        self.inner_blocks = nn.ModuleList(nn.Sequential(nn.Conv2d(one, width, 1)) for one in channels)
        self.layer_blocks = nn.ModuleList(nn.Sequential(nn.Conv2d(width, width, 3, padding=1)) for _ in channels)
        self.extra_blocks = _ExtraLevels(width) if further else None

    def forward(self, stages: list[Tensor]) -> list[Tensor]:
        """Return a level for each stage, the finest first, and the further ones."""
        above = self.inner_blocks[-1](stages[-1])
        found = [self.layer_blocks[-1](above)]
        for i in range(len(stages) - 2, -1, -1):
            here = self.inner_blocks[i](stages[i])
            above = here + F.interpolate(above, size=tuple(here.shape[-2:]), mode="nearest")
            found.insert(0, self.layer_blocks[i](above))
        return found if self.extra_blocks is None else found + self.extra_blocks(found[-1])


class ResNetFPN(nn.Module):
    """A ResNet's last three stages as a pyramid of five levels, at 1/8 to 1/128 of the image's size.

    Args:
        depth: 18, 34, 50 or 101.
        width: of all levels.
    """

    def __init__(self, depth: int = 50, width: int = 256) -> None:
        super().__init__()
        self.body = ResNetBody(depth)
        self.fpn = Pyramid(self.body.widths[1:], width)
        self.width = width

    def forward(self, images: Tensor) -> list[Tensor]:
        """Return the levels."""
        return self.fpn(self.body(images)[1:])
