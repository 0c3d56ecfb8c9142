"""A residual network for images: basic and bottleneck blocks, batch norm, weights initialised by kind of layer."""

from typing import Callable, List, Optional, Type, Union

import numpy as np
import torch
import torch.nn as nn
from torch import Tensor


def conv3x3(in_planes: int, out_planes: int, stride: int = 1, groups: int = 1) -> nn.Conv2d:
    return nn.Conv2d(in_planes, out_planes, kernel_size=3, stride=stride, padding=1, groups=groups, bias=False)


class Basic(nn.Module):
    expansion: int = 1

    def __init__(self, inplanes: int, planes: int, stride: int = 1, downsample: Optional[nn.Module] = None) -> None:
        super().__init__()
        self.conv1 = conv3x3(inplanes, planes, stride)
        self.bn1 = nn.BatchNorm2d(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = conv3x3(planes, planes)
        self.bn2 = nn.BatchNorm2d(planes)
        self.downsample = downsample

    def forward(self, x: Tensor) -> Tensor:
        identity = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += identity
        return self.relu(out)


class Bottleneck(nn.Module):
    expansion: int = 2

    def __init__(self, inplanes: int, planes: int, stride: int = 1, downsample: Optional[nn.Module] = None) -> None:
        super().__init__()
        self.reduce = nn.Sequential(nn.Conv2d(inplanes, planes, 1, bias=False), nn.BatchNorm2d(planes), nn.ReLU())
        self.middle = nn.Sequential(conv3x3(planes, planes, stride, groups=2), nn.BatchNorm2d(planes), nn.ReLU())
        self.widen = nn.Sequential(
            nn.Conv2d(planes, planes * self.expansion, 1, bias=False), nn.BatchNorm2d(planes * self.expansion)
        )
        self.downsample = downsample

    def forward(self, x: Tensor) -> Tensor:
        out = self.widen(self.middle(self.reduce(x)))
        out = out.add_(x if self.downsample is None else self.downsample(x))
        return torch.relu_(out)


class ResNet(nn.Module):
    def __init__(
        self,
        blocks: List[Type[Union[Basic, Bottleneck]]],
        width: int = 8,
        num_classes: int = 10,
        norm_layer: Optional[Callable[..., nn.Module]] = None,
    ) -> None:
        super().__init__()
        norm_layer = norm_layer or nn.BatchNorm2d
        self.inplanes = width
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, kernel_size=7, stride=2, padding=3, bias=False), norm_layer(width)
        )
        self.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
        for i, block in enumerate(blocks):
            setattr(self, f"layer{i + 1}", self._make_layer(block, width * 2**i, stride=1 if i == 0 else 2))
        self.stages = len(blocks)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(self.inplanes, num_classes)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(m, (nn.BatchNorm2d, nn.GroupNorm)):
                nn.init.constant_(m.weight, 1)
                nn.init.zeros_(m.bias)

    def _make_layer(self, block: Type[Union[Basic, Bottleneck]], planes: int, stride: int) -> nn.Sequential:
        downsample = None
        if stride != 1 or self.inplanes != planes * block.expansion:
            downsample = nn.Sequential(
                nn.Conv2d(self.inplanes, planes * block.expansion, kernel_size=1, stride=stride, bias=False),
                nn.BatchNorm2d(planes * block.expansion),
            )
        layers = [block(self.inplanes, planes, stride, downsample)]
        self.inplanes = planes * block.expansion
        return nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(torch.relu(self.stem(x)))
        for i in range(self.stages):
            x = getattr(self, f"layer{i + 1}")(x)
        x = torch.flatten(self.avgpool(x), 1)
        return self.fc(x)


def build() -> nn.Module:
    return ResNet([Basic, Bottleneck])


def example(rng: np.random.Generator) -> dict:
    return {
        "images": rng.standard_normal((4, 3, 32, 32), dtype=np.float32),
        "labels": rng.integers(0, 10, (4,)),
    }


def loss(model: nn.Module, batch: dict) -> tuple:
    logits = model(batch["images"])
    return nn.functional.cross_entropy(logits, batch["labels"], label_smoothing=0.1), {"logits": logits}
