"""Unpooling, power pooling and fractional max pooling layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sbpjax._core.functions import nn as F
from sbpjax._core.ops.dims import fail
from sbpjax._core.tensor import Tensor
from sbpjax.nn.layers.conv import Spatial, as_tuple


class _MaxUnpool(Spatial):
    """Put pooled values back at their original places, zeros elsewhere.

    Args:
        kernel_size: the size of the pooling's window.
        stride: its step; None takes `kernel_size`.
        padding: its padding.
    """

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0):
        super().__init__()
        self.kernel_size = as_tuple(kernel_size, self._spatial)
        self.stride = as_tuple(kernel_size if stride is None else stride, self._spatial)
        self.padding = as_tuple(padding, self._spatial)

    def forward(self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """Return the values at their places.

        Args:
            input: the result of the pooling.
            indices: its indices, from ``return_indices=True``.
            output_size: the sizes before the pooling, where several pool to the same.
        """
        unpool = (F.max_unpool1d, F.max_unpool2d, F.max_unpool3d)[self._spatial - 1]
        return unpool(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpool, dims=1):
    """The inverse of `MaxPool1d`."""


class MaxUnpool2d(_MaxUnpool, dims=2):
    """The inverse of `MaxPool2d`."""


class MaxUnpool3d(_MaxUnpool, dims=3):
    """The inverse of `MaxPool3d`."""


class _LPPool(Spatial):
    """Take the p-norm of every window.

    Args:
        norm_type: p.
        kernel_size: size of the window per dim.
        stride: step of the window per dim; None takes `kernel_size`.
        ceil_mode: also take windows that begin inside but reach past the end.
    """

    def __init__(self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False):
        super().__init__()
        self.norm_type, self.kernel_size, self.stride, self.ceil_mode = norm_type, kernel_size, stride, ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        pool = (F.lp_pool1d, F.lp_pool2d, F.lp_pool3d)[self._spatial - 1]
        return pool(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self) -> str:
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class LPPool1d(_LPPool, dims=1):
    """Power pooling of `(N, C, L)`."""


class LPPool2d(_LPPool, dims=2):
    """Power pooling of `(N, C, H, W)`."""


class LPPool3d(_LPPool, dims=3):
    """Power pooling of `(N, C, D, H, W)`."""


class _FractionalMaxPool(Spatial):
    """Take maxima of windows that begin at random, increasing places.

    Args:
        kernel_size: size of the window per dim.
        output_size: sizes of the result; or
        output_ratio: its share of the input's sizes, between 0 and 1.
        return_indices: return also the flat place of each maximum.
        _random_samples: `(N, C, dims)` numbers in [0, 1) instead of random ones.
    """

    def __init__(
        self,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ):
        super().__init__()
        n = self._spatial
        self.kernel_size, self.return_indices = as_tuple(kernel_size, n), return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else as_tuple(output_size, n)
        self.output_ratio = None if output_ratio is None else as_tuple(output_ratio, n)
        operation = f"{type(self).__name__}(...)"
        if (output_size is None) == (output_ratio is None):
            rule = "exactly one of output_size and output_ratio is given"
            fail(
                "value", operation, f"output_size={output_size}, output_ratio={output_ratio}", rule, "output_ratio=0.5"
            )
        if self.output_ratio is not None and not all(0 < r < 1 for r in self.output_ratio):
            rule = f"output_ratio must be between 0 and 1 (got {output_ratio})"
            fail("value", operation, f"output_ratio={output_ratio}", rule, "output_ratio=0.5")

    def forward(self, input: Tensor) -> Any:
        pool = F.fractional_max_pool2d if self._spatial == 2 else F.fractional_max_pool3d
        options = self.output_size, self.output_ratio, self.return_indices, self._random_samples
        return pool(input, self.kernel_size, *options)


class FractionalMaxPool2d(_FractionalMaxPool, dims=2):
    """Fractional max pooling of `(N, C, H, W)`."""


class FractionalMaxPool3d(_FractionalMaxPool, dims=3):
    """Fractional max pooling of `(N, C, D, H, W)`."""
