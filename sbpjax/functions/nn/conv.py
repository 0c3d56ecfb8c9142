"""Convolutions of tensors."""

from __future__ import annotations

from typing import Any

from sbpjax.ops import conv as ops
from sbpjax.tensor import Tensor
from sbpjax.tensor.binding import hashable
from sbpjax.tensor.dispatch import run
from sbpjax.tensor.op import op_of

from .channels import channels


def _conv(
    fn: Any, input: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, dilation: Any, groups: int
) -> Tensor:
    static = (
        ("stride", hashable(stride)),
        ("padding", hashable(padding)),
        ("dilation", hashable(dilation)),
        ("groups", groups),
    )
    return run(op_of(fn, static), (input, weight, bias))


@channels("channel_pos", weight=True)
def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Return the convolution of `(N, C, L)` with kernels.

    Args:
        input: `(N, C, ...)` or `(C, ...)`; a split batch needs no communication.
        weight: `(O, C / groups, ...)`; ``split(0)`` splits the output channels, ``split(1)`` makes the result a
            partial sum if the input's channels are split too.
        bias: `(O,)` or None.
        stride: step of the kernel, a number or one per dim.
        padding: zeros added on both sides, a number or one per dim, or ``"same"`` or ``"valid"``.
        dilation: distance of the kernel's cells, a number or one per dim.
        groups: channels are divided into so many groups that do not mix.
    """
    return _conv(ops.conv1d, input, weight, bias, stride, padding, dilation, groups)


@channels("channel_pos", weight=True)
def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Return the convolution of `(N, C, H, W)` with kernels; arguments as in `conv1d`."""
    return _conv(ops.conv2d, input, weight, bias, stride, padding, dilation, groups)


@channels("channel_pos", weight=True)
def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Return the convolution of `(N, C, D, H, W)` with kernels; arguments as in `conv1d`."""
    return _conv(ops.conv3d, input, weight, bias, stride, padding, dilation, groups)


def _transposed(fn: Any, input: Tensor, weight: Tensor, bias: Tensor | None, **options: Any) -> Tensor:
    return run(op_of(fn, tuple((k, hashable(v)) for k, v in options.items())), (input, weight, bias))


@channels("data_format", last=False)
def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """Return the transposed convolution of `(N, C, L)`: the gradient of `conv1d` as a function of its output.

    Args:
        input: `(N, C, ...)` or `(C, ...)`.
        weight: `(C, O / groups, ...)`.
        bias: `(O,)` or None.
        stride: distance of the input's cells in the output.
        padding: cells cut from both sides of the output.
        output_padding: cells added to one side of the output.
        groups: channels are divided into so many groups that do not mix.
        dilation: distance of the kernel's cells.
    """
    return _transposed(
        ops.conv_transpose1d,
        input,
        weight,
        bias,
        stride=stride,
        padding=padding,
        output_padding=output_padding,
        groups=groups,
        dilation=dilation,
    )


@channels("data_format", last=False)
def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """Return the transposed convolution of `(N, C, H, W)`: the gradient of `conv2d` as a function of its output."""
    return _transposed(
        ops.conv_transpose2d,
        input,
        weight,
        bias,
        stride=stride,
        padding=padding,
        output_padding=output_padding,
        groups=groups,
        dilation=dilation,
    )


@channels("data_format", last=False)
def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """Return the transposed convolution of `(N, C, D, H, W)`: the gradient of `conv3d` as a function of its output."""
    return _transposed(
        ops.conv_transpose3d,
        input,
        weight,
        bias,
        stride=stride,
        padding=padding,
        output_padding=output_padding,
        groups=groups,
        dilation=dilation,
    )
