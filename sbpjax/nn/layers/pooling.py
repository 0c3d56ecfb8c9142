"""Pooling layers: max and mean pooling, fixed and adaptive, of 1 to 3 dims."""

from __future__ import annotations

from typing import Any

from sbpjax._core.functions import nn as F
from sbpjax._core.tensor import Tensor
from sbpjax.nn.layers.conv import Spatial, as_tuple


class _MaxPool(Spatial):
    """Take the largest element of every window.

    Args:
        kernel_size: size of the window per dim.
        stride: step of the window per dim; None takes `kernel_size`.
        padding: cells of minus infinity added on both sides.
        dilation: distance of the window's cells.
        return_indices: also return where each maximum was.
        ceil_mode: also take windows that begin inside but reach past the end.
    """

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ):
        super().__init__()
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.dilation = padding, dilation
        self.return_indices, self.ceil_mode = return_indices, ceil_mode

    def forward(self, input: Tensor) -> Any:
        options = self.padding, self.dilation, self.ceil_mode, self.return_indices
        pool = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[self._spatial - 1]
        return pool(input, self.kernel_size, self.stride, *options)

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPool, dims=1):
    """Max pooling of `(N, C, L)`."""


class MaxPool2d(_MaxPool, dims=2):
    """Max pooling of `(N, C, H, W)`.

    Returns:
        Splits of the batch and the channels stay.

    Example:
        >>> flow.nn.MaxPool2d(2)(flow.arange(16.0).reshape(1, 1, 4, 4))
        tensor([[[[ 5.,  7.],
                  [13., 15.]]]])
    """


class _AvgPool(Spatial):
    """Base of the layers of mean pooling."""

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AvgPool):
    """Mean pooling of `(N, C, L)`.

    Args:
        kernel_size: size of the window.
        stride: step of the window; None takes `kernel_size`.
        padding: zeros added on both sides.
        ceil_mode: also take windows that begin inside but reach past the end.
        count_include_pad: whether those zeros count in the mean.
    """

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ):
        super().__init__()
        self.kernel_size = as_tuple(kernel_size, 1)
        self.stride = as_tuple(kernel_size if stride is None else stride, 1)
        self.padding, self.ceil_mode, self.count_include_pad = as_tuple(padding, 1), ceil_mode, count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)


class _SpatialAvgPool(_AvgPool):
    """Mean pooling over several dims.

    Args:
        kernel_size: size of the window per dim.
        stride: step of the window per dim; None takes `kernel_size`.
        padding: zeros added on both sides.
        ceil_mode: also take windows that begin inside but reach past the end.
        count_include_pad: whether those zeros count in the mean.
        divisor_override: divide by this instead of the number of cells.
    """

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ):
        super().__init__()
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.ceil_mode = padding, ceil_mode
        self.count_include_pad, self.divisor_override = count_include_pad, divisor_override

    def forward(self, input: Tensor) -> Tensor:
        options = self.padding, self.ceil_mode, self.count_include_pad, self.divisor_override
        pool = F.avg_pool2d if self._spatial == 2 else F.avg_pool3d
        return pool(input, self.kernel_size, self.stride, *options)


class AvgPool2d(_SpatialAvgPool, dims=2):
    """Mean pooling of `(N, C, H, W)`.

    Returns:
        Splits of the batch and the channels stay. A partial sum stays one.

    Example:
        >>> flow.nn.AvgPool2d(2)(flow.arange(16.0).reshape(1, 1, 4, 4)).tolist()
        [[[[2.5, 4.5], [10.5, 12.5]]]]
    """


class _AdaptivePool(Spatial):
    """Pool to a given output size, with windows as even as possible.

    Args:
        output_size: the output size per dim; None keeps the input's.
    """

    def __init__(self, output_size: Any):
        super().__init__()
        self.output_size = output_size

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class _AdaptiveAvgPool(_AdaptivePool):
    """Pool to a given output size by means, with windows as even as possible.

    Args:
        output_size: the output size per dim; None keeps the input's.
    """

    def forward(self, input: Tensor) -> Tensor:
        pool = (F.adaptive_avg_pool1d, F.adaptive_avg_pool2d, F.adaptive_avg_pool3d)[self._spatial - 1]
        return pool(input, self.output_size)


class AdaptiveAvgPool1d(_AdaptiveAvgPool, dims=1):
    """Mean pooling of `(N, C, L)` to a given L."""


class AdaptiveAvgPool2d(_AdaptiveAvgPool, dims=2):
    """Mean pooling of `(N, C, H, W)` to a given H and W.

    Returns:
        Splits of the batch and the channels stay. A partial sum stays one.

    Example:
        >>> flow.nn.AdaptiveAvgPool2d(1)(flow.arange(16.0).reshape(1, 1, 4, 4)).tolist()
        [[[[7.5]]]]
    """


class _AdaptiveMaxPool(_AdaptivePool):
    """Pool to a given output size by maxima, with windows as even as possible.

    Args:
        output_size: the output size per dim; None keeps the input's.
        return_indices: also return where each maximum was.
    """

    def __init__(self, output_size: Any, return_indices: bool = False):
        super().__init__(output_size)
        self.return_indices = return_indices

    def forward(self, input: Tensor) -> Any:
        pool = (F.adaptive_max_pool1d, F.adaptive_max_pool2d, F.adaptive_max_pool3d)[self._spatial - 1]
        return pool(input, self.output_size, self.return_indices)


class AdaptiveMaxPool2d(_AdaptiveMaxPool, dims=2):
    """Max pooling of `(N, C, H, W)` to a given H and W."""


class MaxPool3d(_MaxPool, dims=3):
    """Max pooling of `(N, C, D, H, W)`."""


class AvgPool3d(_SpatialAvgPool, dims=3):
    """Mean pooling of `(N, C, D, H, W)`."""


class AdaptiveAvgPool3d(_AdaptiveAvgPool, dims=3):
    """Mean pooling of `(N, C, D, H, W)` to given sizes."""


class AdaptiveMaxPool1d(_AdaptiveMaxPool, dims=1):
    """Max pooling of `(N, C, L)` to a given L."""


class AdaptiveMaxPool3d(_AdaptiveMaxPool, dims=3):
    """Max pooling of `(N, C, D, H, W)` to given sizes."""
