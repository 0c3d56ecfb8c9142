"""Padding layers for 1 to 3 dims: constant, zero, reflection, replication, circular."""

from __future__ import annotations

from typing import Any

from sbpjax._core.functions import nn as F
from sbpjax._core.ops.dims import fail
from sbpjax._core.tensor import Tensor
from sbpjax.nn.layers.conv import Spatial, as_tuple


class _Pad(Spatial):
    """Add cells around the dims after the channels.

    Args:
        padding: cells at every end, or ``(before, after)`` of the last dim, then of the one before it, and so on.
    """

    _mode = "constant"

    def __init__(self, padding: Any):
        super().__init__()
        self.padding = as_tuple(padding, 2 * self._spatial)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPad(_Pad):
    """Add cells of a constant around the dims after the channels.

    Args:
        padding: cells at every end, or ``(before, after)`` of the last dim, then of the one before it, and so on.
        value: the constant.
    """

    def __init__(self, padding: Any, value: float = 0):
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class _ZeroPad(_ConstantPad):
    """Add zeros around the dims after the channels.

    Args:
        padding: cells at every end, or ``(before, after)`` of the last dim, then of the one before it, and so on.
    """

    def __init__(self, padding: Any):
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ConstantPad1d(_ConstantPad, dims=1):
    """Constants around the last dim."""


class ConstantPad2d(_ConstantPad, dims=2):
    """Constants around the last 2 dims."""


class ConstantPad3d(_ConstantPad, dims=3):
    """Constants around the last 3 dims."""


class ZeroPad1d(_ZeroPad, ConstantPad1d, dims=1):
    """Zeros around the last dim."""


class ZeroPad2d(_ZeroPad, ConstantPad2d, dims=2):
    """Zeros around the last 2 dims.

    Args:
        padding: cells at every end, or ``(left, right, top, bottom)``.

    Returns:
        The widened shape. Splits of the batch and the channels stay.

    Example:
        >>> flow.nn.ZeroPad2d((1, 0, 0, 1))(flow.tensor([[[1.0, 2.0]]])).tolist()
        [[[0.0, 1.0, 2.0], [0.0, 0.0, 0.0]]]
    """


class ZeroPad3d(_ZeroPad, ConstantPad3d, dims=3):
    """Zeros around the last 3 dims."""


class _ReflectionPad(_Pad):
    """Pads with the mirrored edge around the dims after the channels."""

    _mode = "reflect"


class ReflectionPad1d(_ReflectionPad, dims=1):
    """The mirrored edge around the last dim."""


class ReflectionPad2d(_ReflectionPad, dims=2):
    """The mirrored edges around the last 2 dims.

    Args:
        padding: cells at every end, or ``(left, right, top, bottom)``.

    Returns:
        The widened shape. Splits of the batch and the channels stay.

    Example:
        >>> flow.nn.ReflectionPad2d((1, 1, 0, 0))(flow.tensor([[[1.0, 2.0]]])).tolist()
        [[[2.0, 1.0, 2.0, 1.0]]]
    """


class ReflectionPad3d(_ReflectionPad, dims=3):
    """The mirrored edges around the last 3 dims."""


class _ReplicationPad(_Pad):
    """Pads with the repeated edge around the dims after the channels."""

    _mode = "replicate"


class ReplicationPad1d(_ReplicationPad, dims=1):
    """The repeated edge around the last dim."""


class ReplicationPad2d(_ReplicationPad, dims=2):
    """The repeated edges around the last 2 dims."""


class ReplicationPad3d(_ReplicationPad, dims=3):
    """The repeated edges around the last 3 dims."""


class _CircularPad(_Pad):
    """Add the cells of the opposite edge around the dims after the channels.

    Args:
        padding: cells at every end, or ``(before, after)`` of the last dim, then of the one before it, and so on.
    """

    _mode = "circular"

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim not in (self._spatial + 1, self._spatial + 2):
            rule = f"expected {self._spatial + 1}D or {self._spatial + 2}D input (got {input.ndim}D input)"
            fail("value", f"{type(self).__name__}(x)", f"shape {list(input.shape)}", rule, "x.unsqueeze(0)")
        return super().forward(input)


class CircularPad1d(_CircularPad, dims=1):
    """The opposite edge around the last dim."""


class CircularPad2d(_CircularPad, dims=2):
    """The opposite edges around the last 2 dims."""


class CircularPad3d(_CircularPad, dims=3):
    """The opposite edges around the last 3 dims."""
