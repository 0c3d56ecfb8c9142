"""Normalisation layers within one sample: `LayerNorm`, `RMSNorm`, `GroupNorm`, `LocalResponseNorm`."""

from __future__ import annotations

from typing import Any

from sbpjax._core.functions import nn as F
from sbpjax._core.ops.dims import fail
from sbpjax._core.tensor import Tensor
from sbpjax.nn import init
from sbpjax.nn.module import Module
from sbpjax.nn.parameter import parameter


class LayerNorm(Module):
    """Normalise the last dims to mean 0 and variance 1, then scale and shift.

    The statistics are of the last dims only, so a split of any other dim needs no communication.

    Args:
        normalized_shape: the sizes of the dims to normalise over.
        eps: added to the variance.
        elementwise_affine: whether there are `weight` and `bias`.
        bias: whether there is a `bias`.
        device: where the parameters are made.
        dtype: their dtype.

    Example:
        >>> x = flow.ones(4, 6).to_global(flow.placement("cpu", [0, 1]), flow.sbp.split(0))
        >>> layer = flow.nn.LayerNorm(6).to_global(x.placement, flow.sbp.broadcast)
        >>> layer(x).shape, layer(x).sbp
        (sbpjax.Size([4, 6]), (sbpjax.sbp.split(dim=0),))
    """

    def __init__(
        self,
        normalized_shape: int | tuple[int, ...],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        for name, wanted in (("weight", elementwise_affine), ("bias", elementwise_affine and bias)):
            made = parameter(*self.normalized_shape, device=device, dtype=dtype) if wanted else None
            self.register_parameter(name, made)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set `weight` to one and `bias` to zero."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """Divide the last dims by their root mean square, then scale.

    Args:
        normalized_shape: the sizes of the dims to normalise over.
        eps: added to the mean square; None takes the dtype's machine epsilon.
        elementwise_affine: whether there is a `weight`.
        device: where it is made.
        dtype: its dtype.

    Returns:
        The input's shape. A split of any other dim stays, without communication; a partial sum is reduced first.

    Example:
        >>> flow.nn.RMSNorm(2, eps=0.0)(flow.tensor([[1.0, 7.0]])).tolist()
        [[0.20000000298023224, 1.399999976158142]]
    """

    def __init__(
        self,
        normalized_shape: int | tuple[int, ...],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        made = parameter(*self.normalized_shape, device=device, dtype=dtype) if elementwise_affine else None
        self.register_parameter("weight", made)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set `weight` to one."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, input: Tensor) -> Tensor:
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(Module):
    """Normalise groups of channels of an `(N, C, ...)` input, then scale and shift each channel.

    Args:
        num_groups: the number of groups.
        num_channels: C; a multiple of `num_groups`.
        eps: added to the variance.
        affine: whether there are `weight` and `bias`.
        device: where the parameters are made.
        dtype: their dtype.
        bias: whether there is a `bias`.

    Returns:
        The input's shape. Splits of the batch stay, and of the channels where no group is cut.

    Raises:
        OpValueError: `num_groups` does not divide `num_channels`.

    Example:
        >>> flow.nn.GroupNorm(2, 4)(flow.ones(1, 4, 3)).shape
        sbpjax.Size([1, 4, 3])
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ):
        super().__init__()
        if num_groups < 1:
            rule = "num_groups must be at least 1"
            fail("value", f"GroupNorm({num_groups}, {num_channels})", f"num_groups={num_groups}", rule, "num_groups=1")
        if num_channels % num_groups != 0:
            fail(
                "value",
                f"GroupNorm({num_groups}, {num_channels})",
                f"num_groups={num_groups}, num_channels={num_channels}",
                f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})",
                f"num_channels={-(-num_channels // num_groups) * num_groups}, or num_groups=1",
            )
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            made = parameter(num_channels, device=device, dtype=dtype) if wanted else None
            self.register_parameter(name, made)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set `weight` to one and `bias` to zero."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class RMSLayerNorm(Module):
    """Divide the last dim by its root mean square, then scale; OneFlow's name for T5's norm.

    Args:
        hidden_size: the size of the last dim.
        eps: added to the mean square.
    """

    def __init__(self, hidden_size: int, eps: float = 1e-6):
        super().__init__()
        self.weight = parameter(hidden_size)
        self.variance_epsilon = eps
        init.ones_(self.weight)

    def forward(self, hidden_states: Tensor) -> Tensor:
        return F.rms_norm(hidden_states, tuple(self.weight.shape), self.weight, self.variance_epsilon)


class LocalResponseNorm(Module):
    """Divide `(N, C, ...)` by ``(k + alpha * mean of the squares of size neighbouring channels) ** beta``.

    Args:
        size: the number of neighbouring channels.
        alpha: factor of the mean.
        beta: exponent.
        k: the constant added.
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0):
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(LocalResponseNorm):
    """The old name of `LocalResponseNorm`.

    Args:
        size: the number of neighbouring channels; one less if even, so that the window is symmetric.
        alpha: factor of the mean.
        beta: exponent.
        k: the constant added.
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1):
        super().__init__(size, alpha, beta, k)

    def forward(self, input: Tensor) -> Tensor:
        window = self.size - (self.size % 2 == 0)
        return F.local_response_norm(input, window, self.alpha * window / self.size, self.beta, self.k)
