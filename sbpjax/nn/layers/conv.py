"""Convolution layers: `Conv1d`, `Conv2d`, `Conv3d`."""

from __future__ import annotations

import math
from typing import Any, NoReturn

from sbpjax._core.functions import nn as F
from sbpjax._core.functions.table.texts import InheritedDocstring
from sbpjax._core.ops.dims import fail
from sbpjax._core.tensor import Tensor
from sbpjax.nn import init
from sbpjax.nn.module import Module
from sbpjax.nn.parameter import parameter, register_bias

_MODES = {"zeros": "constant", "reflect": "reflect", "replicate": "replicate", "circular": "circular"}


def as_tuple(value: Any, length: int) -> tuple:
    """Return a number as a tuple of that many equal numbers, and a sequence as a tuple."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * length


class Spatial(Module):
    """Base of layers over some dims after the channels, whose number is an option: ``class Conv2d(_Conv, dims=2)``.

    The docstring of such a class is completed by that of its base, which explains the arguments.
    """

    _spatial = 0

    def __init_subclass__(cls, dims: int = 0, **options: Any) -> None:
        super().__init_subclass__(**options)
        if dims:
            cls._spatial = dims
            cls.__doc__ = InheritedDocstring(cls.__doc__, cls.__mro__[1])  # type: ignore[assignment]


class _Conv(Spatial):
    """Convolve an `(N, C, ...)` input with learned kernels.

    Args:
        in_channels: C of the input.
        out_channels: C of the output.
        kernel_size: size of the kernel per dim.
        stride: step of the kernel per dim.
        padding: cells added on both sides per dim, or ``"valid"`` or ``"same"``.
        dilation: distance of the kernel's cells per dim.
        groups: channels are divided into so many groups that do not mix.
        bias: whether a number per output channel is added.
        padding_mode: ``"zeros"``, ``"reflect"``, ``"replicate"`` or ``"circular"``.
        device: where the parameters are made.
        dtype: their dtype.

    `weight` is `(out_channels, in_channels / groups, ...)`: ``split(0)`` divides the output channels over the
    ranks, ``split(1)`` the input channels (the result is a partial sum).
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...] = 1,
        padding: int | tuple[int, ...] | str = 0,
        dilation: int | tuple[int, ...] = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__()
        if groups <= 0:
            self._refuse(f"groups={groups}", "groups must be a positive integer", "groups=1")
        for name, channels in (("in_channels", in_channels), ("out_channels", out_channels)):
            if channels % groups != 0:
                rule = f"{name} must be divisible by groups: {channels} and {groups}"
                self._refuse(f"{name}={channels}, groups={groups}", rule, f"{name}={-(-channels // groups) * groups}")
        if isinstance(padding, str) and padding not in ("same", "valid"):
            rule = f"Invalid padding string {padding!r}, should be one of 'valid', 'same'"
            self._refuse(f"padding={padding!r}", rule, "padding='same', or a number of cells")
        if padding == "same" and any(s != 1 for s in as_tuple(stride, self._spatial)):
            rule = "padding='same' is not supported for strided convolutions"
            self._refuse(f"padding='same', stride={stride}", rule, "stride=1, or a number of cells as padding")
        if padding_mode not in _MODES:
            rule = f"padding_mode must be one of {list(_MODES)}, but got padding_mode='{padding_mode}'"
            self._refuse(f"padding_mode={padding_mode!r}", rule, "padding_mode='zeros'")
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size = as_tuple(kernel_size, self._spatial)
        self.stride = as_tuple(stride, self._spatial)
        self.padding = padding if isinstance(padding, str) else as_tuple(padding, self._spatial)
        self.dilation = as_tuple(dilation, self._spatial)
        self.padding_mode = padding_mode
        self.weight = parameter(*self._weight_shape(), device=device, dtype=dtype)
        register_bias(self, out_channels, bias, device, dtype)
        self.reset_parameters()

    def _weight_shape(self) -> tuple[int, ...]:
        return self.out_channels, self.in_channels // self.groups, *self.kernel_size

    def _refuse(self, seen: str, rule: str, fix: str) -> NoReturn:
        fail("value", f"{type(self).__name__}(...)", seen, rule, fix)

    def reset_parameters(self) -> None:
        """Draw the parameters anew, uniform in ±1/sqrt(in_channels / groups * kernel cells)."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        init.bias_(self.bias, init.fans(self.weight)[0])

    def forward(self, input: Tensor) -> Tensor:
        convolve = (F.conv1d, F.conv2d, F.conv3d)[self._spatial - 1]
        input, padding = self._pad_input(input)
        return convolve(input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)

    def _pad_input(self, input: Tensor) -> tuple[Tensor, Any]:
        """Return the input with the padding that the convolution op cannot add, and the remaining padding."""
        if self.padding_mode == "zeros":
            return input, self.padding
        return F.pad(input, self._sides(), mode=_MODES[self.padding_mode]), 0

    def _sides(self) -> list[int]:
        """Return the padding in the order of `functional.pad`: last dim first, before and after."""
        sides: list[int] = []
        for i in reversed(range(self._spatial)):
            if self.padding == "valid":
                sides += [0, 0]
            elif self.padding == "same":
                total = self.dilation[i] * (self.kernel_size[i] - 1)
                sides += [total // 2, total - total // 2]
            else:
                sides += [self.padding[i], self.padding[i]]  # type: ignore[list-item]
        return sides

    def extra_repr(self) -> str:
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        if self.padding != (0,) * self._spatial:
            text += f", padding={self.padding}"
        if self.dilation != (1,) * self._spatial:
            text += f", dilation={self.dilation}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text


class Conv1d(_Conv, dims=1):
    """Convolution of `(N, C, L)`.

    Example:
        >>> flow.nn.Conv1d(3, 4, 3)(flow.ones(2, 3, 8)).shape
        sbpjax.Size([2, 4, 6])
    """


class Conv2d(_Conv, dims=2):
    """Convolution of `(N, C, H, W)`.

    Example:
        >>> x = flow.ones(2, 3, 8, 8).to_global(flow.placement("cpu", [0, 1]), flow.sbp.split(0))
        >>> layer = flow.nn.Conv2d(3, 4, 3, padding=1).to_global(x.placement, flow.sbp.broadcast)
        >>> layer(x).shape, layer(x).sbp
        (sbpjax.Size([2, 4, 8, 8]), (sbpjax.sbp.split(dim=0),))
    """


class Conv3d(_Conv, dims=3):
    """Convolution of `(N, C, D, H, W)`."""
