"""Transposed convolution layers: `ConvTranspose1d`, `ConvTranspose2d`, `ConvTranspose3d`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sbpjax._core.functions import nn as F
from sbpjax._core.ops.dims import fail
from sbpjax._core.tensor import Tensor
from sbpjax.nn.layers.conv import _Conv, as_tuple


class _ConvTranspose(_Conv):
    """Apply the gradient of a convolution to an `(N, C, ...)` input.

    Args:
        in_channels: C of the input.
        out_channels: C of the output.
        kernel_size: size of the kernel per dim.
        stride: distance of the input's cells in the output, per dim.
        padding: cells cut from both sides of the output, per dim.
        output_padding: cells added to one side of the output, per dim.
        groups: channels are divided into so many groups that do not mix.
        bias: whether a number per output channel is added.
        dilation: distance of the kernel's cells per dim.
        padding_mode: ``"zeros"``, the only one.
        device: where the parameters are made.
        dtype: their dtype.

    `weight` is `(in_channels, out_channels / groups, ...)`: ``split(1)`` divides the output channels over the ranks,
    ``split(0)`` the input channels (the result is a partial sum).
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ):
        if padding_mode != "zeros":
            rule = f"Only 'zeros' padding mode is supported for {type(self).__name__}"
            fail("value", f"{type(self).__name__}(...)", f"padding_mode={padding_mode!r}", rule, "padding_mode='zeros'")
        options = {"device": device, "dtype": dtype}
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, **options
        )
        self.transposed = True
        self.output_padding = as_tuple(output_padding, self._spatial)

    def _weight_shape(self) -> tuple[int, ...]:
        return self.in_channels, self.out_channels // self.groups, *self.kernel_size

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """Return the transposed convolution.

        Args:
            input: `(N, C, ...)` or `(C, ...)`.
            output_size: sizes of the output (or its whole shape) where several are possible.
        """
        convolve = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[self._spatial - 1]
        extra = self.output_padding if output_size is None else self._extra_output_padding(input, output_size)
        return convolve(input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation)

    def _extra_output_padding(self, input: Tensor, output_size: Sequence[int]) -> tuple[int, ...]:
        """Return the output padding that gives `output_size`."""
        n = self._spatial
        wanted, operation = tuple(output_size), f"{type(self).__name__}(x, output_size={list(output_size)})"
        if len(wanted) == input.ndim:
            wanted = wanted[-n:]
        if len(wanted) != n:
            rule = f"for {input.ndim}D input, output_size must have {n} or {input.ndim} elements (got {len(wanted)})"
            fail("value", operation, f"input {tuple(input.shape)}", rule, "the spatial sizes alone")
        least = [
            (size - 1) * s - 2 * p + d * (k - 1) + 1
            for size, s, p, d, k in zip(
                input.shape[-n:],
                self.stride,
                self.padding,
                self.dilation,
                self.kernel_size,  # type: ignore[arg-type]
            )
        ]
        if any(not low <= size <= low + s - 1 for size, low, s in zip(wanted, least, self.stride)):
            most = [low + s - 1 for low, s in zip(least, self.stride)]
            rule = f"requested an output size of {list(wanted)}, but valid sizes range from {least} to {most}"
            fail("value", operation, f"input {tuple(input.shape)}", rule, f"output_size={least}")
        return tuple(size - low for size, low in zip(wanted, least))

    def extra_repr(self) -> str:
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        zeros, ones = (0,) * self._spatial, (1,) * self._spatial
        for name, default in (("padding", zeros), ("dilation", ones), ("output_padding", zeros), ("groups", 1)):
            if getattr(self, name) != default:
                text += f", {name}={getattr(self, name)}"
        return text if self.bias is not None else f"{text}, bias=False"


class ConvTranspose1d(_ConvTranspose, dims=1):
    """Transposed convolution of `(N, C, L)`."""


class ConvTranspose2d(_ConvTranspose, dims=2):
    """Transposed convolution of `(N, C, H, W)`.

    Example:
        >>> flow.nn.ConvTranspose2d(3, 4, 2, stride=2)(flow.ones(1, 3, 4, 4)).shape
        sbpjax.Size([1, 4, 8, 8])
    """


class ConvTranspose3d(_ConvTranspose, dims=3):
    """Transposed convolution of `(N, C, D, H, W)`."""
