"""Instance normalisation layers: `InstanceNorm1d`, `InstanceNorm2d`, `InstanceNorm3d`."""

from __future__ import annotations

from typing import Any

from sbpjax._core.functions import nn as F
from sbpjax._core.functions.table.texts import InheritedDocstring
from sbpjax._core.ops.dims import fail
from sbpjax._core.tensor import Tensor
from sbpjax.nn.layers.batchnorm import _NormBase


class _InstanceNorm(_NormBase):
    """Normalise every channel of every sample, then scale and shift.

    Args:
        num_features: the number of channels C.
        eps: added to the variance.
        momentum: weight of a new batch in the running statistics.
        affine: whether there are `weight` and `bias`.
        track_running_stats: keep running statistics, and use them in evaluation mode.
        device: where the tensors are made.
        dtype: their dtype.
        bias: whether there is a `bias`.

    The statistics are of one sample, so a split of the batch needs no communication.
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def forward(self, input: Tensor) -> Tensor:
        single, batch = self._dims
        if input.ndim not in (single, batch):
            fail(
                "value",
                f"{type(self).__name__}(x)",
                f"shape {list(input.shape)}",
                f"expected {single}D or {batch}D input (got {input.ndim}D input)",
                "x.unsqueeze(0) adds a batch dim; InstanceNorm1d, 2d and 3d differ in the dims they take",
            )
        dim = 0 if input.ndim == single else 1
        if self.affine and input.shape[dim] != self.num_features:
            channels = input.shape[dim]
            rule = f"expected input's size at dim={dim} to match num_features ({self.num_features})"
            fail("value", f"{type(self).__name__}(x)", f"{channels} channels", rule, f"num_features={channels}")
        out = F.instance_norm(
            input.unsqueeze(0) if input.ndim == single else input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            self.momentum if self.momentum is not None else 0.0,
            self.eps,
        )
        return out.squeeze(0) if input.ndim == single else out


class InstanceNorm1d(_InstanceNorm):
    """Instance normalisation of `(N, C, L)` or `(C, L)`."""

    __doc__ = InheritedDocstring(__doc__, _InstanceNorm)
    _dims = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Instance normalisation of `(N, C, H, W)` or `(C, H, W)`.

    Returns:
        The input's shape. Splits of the batch and the channels stay.

    Example:
        >>> flow.nn.InstanceNorm2d(1)(flow.ones(2, 1, 4, 4)).shape
        sbpjax.Size([2, 1, 4, 4])
    """

    __doc__ = InheritedDocstring(__doc__, _InstanceNorm)
    _dims = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Instance normalisation of `(N, C, D, H, W)` or `(C, D, H, W)`."""

    __doc__ = InheritedDocstring(__doc__, _InstanceNorm)
    _dims = (4, 5)
