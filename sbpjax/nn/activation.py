"""Activation functions as layers; each is its function in `sbpjax.nn.functional` with fixed options."""

from __future__ import annotations

from typing import Any

from sbpjax.nn import functional as F
from sbpjax.nn import init
from sbpjax.nn.module import Module
from sbpjax.nn.parameter import parameter
from sbpjax.ops.dims import fail
from sbpjax.tensor import Tensor


class _Activation(Module):
    """An activation without options but `inplace`."""

    def __init__(self, inplace: bool = False):
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class ReLU(_Activation):
    """max(x, 0)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.relu(input, self.inplace)


class ReLU6(_Activation):
    """min(max(x, 0), 6)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.relu6(input, self.inplace)


class SiLU(_Activation):
    """x * sigmoid(x)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.silu(input, self.inplace)


class Mish(_Activation):
    """x * tanh(softplus(x))."""

    def forward(self, input: Tensor) -> Tensor:
        return F.mish(input, self.inplace)


class Hardswish(_Activation):
    """x * min(max(x + 3, 0), 6) / 6."""

    def forward(self, input: Tensor) -> Tensor:
        return F.hardswish(input, self.inplace)


class Hardsigmoid(_Activation):
    """min(max(x + 3, 0), 6) / 6."""

    def forward(self, input: Tensor) -> Tensor:
        return F.hardsigmoid(input, self.inplace)


class SELU(_Activation):
    """The self-normalising elu."""

    def forward(self, input: Tensor) -> Tensor:
        return F.selu(input, self.inplace)


class Tanh(Module):
    """tanh(x)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.tanh(input)


class Sigmoid(Module):
    """1 / (1 + e**-x)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.sigmoid(input)


class LogSigmoid(Module):
    """log(1 / (1 + e**-x))."""

    def forward(self, input: Tensor) -> Tensor:
        return F.logsigmoid(input)


class Softsign(Module):
    """x / (1 + |x|)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.softsign(input)


class Tanhshrink(Module):
    """x - tanh(x)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.tanhshrink(input)


class _Options(Module):
    """An activation with options, kept as attributes of the names in `_names`."""

    _names: tuple[str, ...] = ()

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in self._names)


class GELU(_Options):
    """x times the normal distribution function of x.

    Args:
        approximate: ``"none"`` for erf, ``"tanh"`` for the tanh formula.
    """

    _names = ("approximate",)

    def __init__(self, approximate: str = "none"):
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, approximate=self.approximate)


class QuickGELU(Module):
    """x * sigmoid(1.702 x)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.quick_gelu(input)


class LeakyReLU(_Options):
    """x where positive, else negative_slope * x.

    Args:
        negative_slope: the slope below zero.
        inplace: write into the input.
    """

    _names = ("negative_slope",)

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False):
        super().__init__()
        self.negative_slope, self.inplace = negative_slope, inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.leaky_relu(input, self.negative_slope, self.inplace)


class ELU(_Options):
    """x where positive, else alpha * (e**x - 1).

    Args:
        alpha: the limit below zero, negated.
        inplace: write into the input.
    """

    _names = ("alpha",)

    def __init__(self, alpha: float = 1.0, inplace: bool = False):
        super().__init__()
        self.alpha, self.inplace = alpha, inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.elu(input, self.alpha, self.inplace)


class CELU(_Options):
    """max(x, 0) + min(0, alpha * (e**(x / alpha) - 1)).

    Args:
        alpha: the limit below zero, negated.
        inplace: write into the input.
    """

    _names = ("alpha",)

    def __init__(self, alpha: float = 1.0, inplace: bool = False):
        super().__init__()
        self.alpha, self.inplace = alpha, inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.celu(input, self.alpha, self.inplace)


class Hardtanh(_Options):
    """x limited to [min_val, max_val].

    Args:
        min_val: the lower bound.
        max_val: the upper bound.
        inplace: write into the input.
        min_value: an older name of ``min_val``.
        max_value: an older name of ``max_val``.
    """

    _names = ("min_val", "max_val")

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ):
        super().__init__()
        min_val = min_val if min_value is None else min_value
        max_val = max_val if max_value is None else max_value
        if not max_val > min_val:
            rule = f"max_val is larger than min_val, got {min_val} and {max_val}"
            fail("value", "Hardtanh(...)", f"min_val={min_val}, max_val={max_val}", rule, "nn.Hardtanh(-1.0, 1.0)")
        self.min_val, self.max_val, self.inplace = min_val, max_val, inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)


class Threshold(_Options):
    """x where it is above `threshold`, else `value`.

    Args:
        threshold: the bound.
        value: what stands for the rest.
        inplace: write into the input.
    """

    _names = ("threshold", "value")

    def __init__(self, threshold: float, value: float, inplace: bool = False):
        super().__init__()
        self.threshold, self.value, self.inplace = threshold, value, inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.threshold(input, self.threshold, self.value, self.inplace)


class Softplus(_Options):
    """log(1 + e**(beta x)) / beta.

    Args:
        beta: the steepness.
        threshold: above it, beta x counts as linear.
    """

    _names = ("beta", "threshold")

    def __init__(self, beta: float = 1.0, threshold: float = 20.0):
        super().__init__()
        self.beta, self.threshold = beta, threshold

    def forward(self, input: Tensor) -> Tensor:
        return F.softplus(input, self.beta, self.threshold)


class Hardshrink(_Options):
    """x, and 0 where |x| <= lambd.

    Args:
        lambd: the bound.
        inplace: write into the input.
    """

    def __init__(self, lambd: float = 0.5, inplace: bool = False):
        super().__init__()
        self.lambd, self.inplace = lambd, inplace

    def extra_repr(self) -> str:
        return str(self.lambd)

    def forward(self, input: Tensor) -> Tensor:
        return F.hardshrink(input, self.lambd, self.inplace)


class Softshrink(_Options):
    """x moved by `lambd` towards 0, and 0 where |x| <= lambd.

    Args:
        lambd: the bound.
        inplace: write into the input.
    """

    def __init__(self, lambd: float = 0.5, inplace: bool = False):
        super().__init__()
        if lambd < 0:
            rule = f"lambda must be greater or equal to 0, but found to be {lambd}"
            fail("value", f"Softshrink({lambd})", f"lambd={lambd}", rule, "nn.Softshrink(0.5)")
        self.lambd, self.inplace = lambd, inplace

    def extra_repr(self) -> str:
        return str(self.lambd)

    def forward(self, input: Tensor) -> Tensor:
        return F.softshrink(input, self.lambd, self.inplace)


class GLU(_Options):
    """a * sigmoid(b), with a and b the halves of x along `dim`.

    Args:
        dim: the dim that is halved.
    """

    _names = ("dim",)

    def __init__(self, dim: int = -1):
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.glu(input, self.dim)


class Softmax(_Options):
    """e**x normalised to sum 1 along `dim`.

    Args:
        dim: the dim of the classes.
    """

    _names = ("dim",)

    def __init__(self, dim: int | None = None):
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim)


class LogSoftmax(_Options):
    """The logarithm of the softmax along `dim`.

    Args:
        dim: the dim of the classes.
    """

    _names = ("dim",)

    def __init__(self, dim: int | None = None):
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, self.dim)


class PReLU(_Options):
    """x where positive, else a learned slope times x.

    Args:
        num_parameters: 1, or one slope per channel.
        init: the slopes at the start.
        device: where they are made.
        dtype: their dtype.
    """

    _names = ("num_parameters",)

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None):
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = parameter(num_parameters, device=device, dtype=dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the slopes to `init`."""
        init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)


class SquareReLU(_Options):
    """max(x, 0)²."""

    def forward(self, input: Tensor) -> Tensor:
        return F.square_relu(input)


class RReLU(_Options):
    """x where positive, else x times a slope: random in training, else the mean of the bounds.

    Args:
        lower: the smallest slope.
        upper: the largest slope.
        inplace: write into the input.
    """

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False):
        super().__init__()
        self.lower, self.upper, self.inplace = lower, upper, inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"lower={self.lower}, upper={self.upper}{', inplace=True' if self.inplace else ''}"


class Softmin(_Options):
    """The softmax of -x along `dim`.

    Args:
        dim: the dim of the classes.
    """

    _names = ("dim",)

    def __init__(self, dim: int | None = None):
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.softmin(input, self.dim)


class Softmax2d(_Options):
    """The softmax over the channels of `(N, C, H, W)` or `(C, H, W)`."""

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim not in (3, 4):
            rule = f"Softmax2d: expected input to be 3D or 4D, got {input.ndim}D instead"
            fail("value", "Softmax2d()(x)", f"shape {list(input.shape)}", rule, "nn.Softmax(1)")
        return F.softmax(input, -3)
