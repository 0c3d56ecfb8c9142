"""Pooling of tensors: the largest or the mean of windows over the dims behind the channels."""

from __future__ import annotations

from typing import Any

from sbpjax.ops import pool as ops
from sbpjax.tensor import Tensor
from sbpjax.tensor.binding import hashable
from sbpjax.tensor.dispatch import run
from sbpjax.tensor.oneflow_arguments import take_oneflow
from sbpjax.tensor.op import op_of

from .channels import channels


def _pool(fn: Any, input: Tensor, **options: Any) -> Any:
    return run(op_of(fn, tuple((k, hashable(v)) for k, v in options.items())), (input,))


@channels("data_format")
def max_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the largest element of every window of `(N, C, L)`.

    Args:
        input: `(N, C, ...)` or `(C, ...)`; splits of the batch and the channels need no communication.
        kernel_size: size of the window, a number or one per dim.
        stride: step of the window; None takes `kernel_size`.
        padding: cells of minus infinity added on both sides.
        dilation: distance of the window's cells.
        ceil_mode: also take windows that begin inside but reach past the end.
        return_indices: return also the flat place of each maximum, int64.
    """
    return _pool(
        ops.max_pool1d,
        input,
        kernel_size=kernel_size,
        stride=stride,
        padding=padding,
        dilation=dilation,
        ceil_mode=ceil_mode,
        return_indices=return_indices,
    )


@channels("data_format")
def max_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the largest element of every window of `(N, C, H, W)`; arguments as in `max_pool1d`."""
    return _pool(
        ops.max_pool2d,
        input,
        kernel_size=kernel_size,
        stride=stride,
        padding=padding,
        dilation=dilation,
        ceil_mode=ceil_mode,
        return_indices=return_indices,
    )


@channels("data_format")
def max_pool3d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the largest element of every window of `(N, C, D, H, W)`; arguments as in `max_pool1d`."""
    return _pool(
        ops.max_pool3d,
        input,
        kernel_size=kernel_size,
        stride=stride,
        padding=padding,
        dilation=dilation,
        ceil_mode=ceil_mode,
        return_indices=return_indices,
    )


@channels("data_format")
def avg_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Return the mean of every window of `(N, C, L)`.

    Args:
        input: `(N, C, ...)` or `(C, ...)`.
        kernel_size: size of the window, a number or one per dim.
        stride: step of the window; None takes `kernel_size`.
        padding: zeros added on both sides.
        ceil_mode: also take windows that begin inside but reach past the end.
        count_include_pad: whether those zeros count in the mean.
        divisor_override: divide by it instead of by the number of cells.
    """
    return _pool(
        ops.avg_pool1d,
        input,
        kernel_size=kernel_size,
        stride=stride,
        padding=padding,
        ceil_mode=ceil_mode,
        count_include_pad=count_include_pad,
        divisor_override=divisor_override,
    )


@channels("data_format")
def avg_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Return the mean of every window of `(N, C, H, W)`; `divisor_override` replaces the number of cells."""
    return _pool(
        ops.avg_pool2d,
        input,
        kernel_size=kernel_size,
        stride=stride,
        padding=padding,
        ceil_mode=ceil_mode,
        count_include_pad=count_include_pad,
        divisor_override=divisor_override,
    )


@channels("data_format")
def avg_pool3d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Return the mean of every window of `(N, C, D, H, W)`; `divisor_override` replaces the number of cells."""
    return _pool(
        ops.avg_pool3d,
        input,
        kernel_size=kernel_size,
        stride=stride,
        padding=padding,
        ceil_mode=ceil_mode,
        count_include_pad=count_include_pad,
        divisor_override=divisor_override,
    )


def adaptive_avg_pool1d(input: Tensor, output_size: int | tuple | list | None) -> Tensor:
    """Return `(N, C, L)` pooled by means to `output_size`; None keeps a dim."""
    return _pool(ops.adaptive_avg_pool1d, input, output_size=output_size)


def adaptive_avg_pool2d(input: Tensor, output_size: int | tuple | list | None) -> Tensor:
    """Return `(N, C, H, W)` pooled by means to `output_size`; None keeps a dim."""
    return _pool(ops.adaptive_avg_pool2d, input, output_size=output_size)


def adaptive_avg_pool3d(input: Tensor, output_size: int | tuple | list | None) -> Tensor:
    """Return `(N, C, D, H, W)` pooled by means to `output_size`; None keeps a dim."""
    return _pool(ops.adaptive_avg_pool3d, input, output_size=output_size)


def adaptive_max_pool1d(input: Tensor, output_size: int | tuple | list | None, return_indices: bool = False) -> Any:
    """Return `(N, C, L)` pooled by maxima to `output_size`, with their places if wanted."""
    return _pool(ops.adaptive_max_pool1d, input, output_size=output_size, return_indices=return_indices)


def adaptive_max_pool2d(input: Tensor, output_size: int | tuple | list | None, return_indices: bool = False) -> Any:
    """Return `(N, C, H, W)` pooled by maxima to `output_size`, with their places if wanted."""
    return _pool(ops.adaptive_max_pool2d, input, output_size=output_size, return_indices=return_indices)


def adaptive_max_pool3d(input: Tensor, output_size: int | tuple | list | None, return_indices: bool = False) -> Any:
    """Return `(N, C, D, H, W)` pooled by maxima to `output_size`, with their places if wanted."""
    return _pool(ops.adaptive_max_pool3d, input, output_size=output_size, return_indices=return_indices)


def _with_indices(pool: Any) -> Any:
    def pooled(input: Tensor, *args: Any, **options: Any) -> tuple[Tensor, Tensor]:
        return pool(input, *args, **{**options, "return_indices": True})

    pooled.__name__ = pooled.__qualname__ = f"{pool.__name__}_with_indices"
    pooled.__doc__ = f"Return `{pool.__name__}` with the flat place of each maximum."
    return pooled


max_pool1d_with_indices = _with_indices(max_pool1d)
max_pool2d_with_indices = _with_indices(max_pool2d)
max_pool3d_with_indices = _with_indices(max_pool3d)
adaptive_max_pool1d_with_indices = _with_indices(adaptive_max_pool1d)
adaptive_max_pool2d_with_indices = _with_indices(adaptive_max_pool2d)
adaptive_max_pool3d_with_indices = _with_indices(adaptive_max_pool3d)


take_oneflow(globals(), "nn.functional.")
