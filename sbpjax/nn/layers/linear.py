"""Linear layers and reshapes: `Linear`, `Bilinear`, `Identity`, `Flatten`, `Unflatten`."""

from __future__ import annotations

import math
from typing import Any

from sbpjax._core.functions import nn as F
from sbpjax._core.ops.dims import fail
from sbpjax._core.tensor import Tensor
from sbpjax.nn import init
from sbpjax.nn.module import Module
from sbpjax.nn.parameter import parameter, register_bias


class Identity(Module):
    """Return the input, of any sbp, whatever the arguments of the constructor are.

    Args:
        args: ignored.
        kwargs: ignored.

    Example:
        >>> flow.nn.Identity()(flow.tensor([1.0]))
        tensor([1.])
    """

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return input


class Linear(Module):
    """``y = x Wᵀ + b``.

    `weight` is `(out_features, in_features)`: ``split(0)`` divides the outputs over the ranks (column parallel),
    ``split(1)`` the inputs (row parallel, whose result is a partial sum). Both parameters start uniform in
    ±1/sqrt(in_features).

    Args:
        in_features: size of the last dim of x.
        out_features: size of the last dim of y.
        bias: whether there is a b.
        device: where the parameters are made.
        dtype: their dtype.

    Example:
        >>> p = flow.placement("cpu", [0, 1])
        >>> layer = flow.nn.Linear(4, 6).to_global(p, flow.sbp.split(0))
        >>> y = layer(flow.ones(2, 4, placement=p, sbp=flow.sbp.broadcast))
        >>> y.shape, y.sbp
        (sbpjax.Size([2, 6]), (sbpjax.sbp.split(dim=1),))
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None):
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = parameter(out_features, in_features, device=device, dtype=dtype)
        register_bias(self, out_features, bias, device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        init.bias_(self.bias, self.in_features)

    def forward(self, input: Tensor) -> Tensor:
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class NonDynamicallyQuantizableLinear(Linear):
    """The output projection of attention: PyTorch's name for it, which reprs and isinstance checks show."""


class Bilinear(Module):
    """``y = x1 A x2 + b``, one matrix A per output feature.

    Args:
        in1_features: size of the last dim of x1.
        in2_features: size of the last dim of x2.
        out_features: size of the last dim of y.
        bias: whether there is a b.
        device: where the parameters are made.
        dtype: their dtype.
    """

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__()
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        self.weight = parameter(out_features, in1_features, in2_features, device=device, dtype=dtype)
        register_bias(self, out_features, bias, device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        bound = 1 / math.sqrt(self.weight.shape[1])
        init.uniform_(self.weight, -bound, bound)
        init.bias_(self.bias, self.weight.shape[1])

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )


class Flatten(Module):
    """Join the dims from `start_dim` to `end_dim` into one.

    Args:
        start_dim: the first dim.
        end_dim: the last dim.

    Returns:
        A split of a dim before the joined ones stays, and one of the first of these. A partial sum stays one.

    Example:
        >>> flow.nn.Flatten()(flow.ones(2, 3, 4)).shape
        sbpjax.Size([2, 12])
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1):
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Take one dim apart into several.

    Args:
        dim: the dim.
        unflattened_size: the sizes it becomes.
    """

    def __init__(self, dim: int, unflattened_size: tuple[int, ...]):
        super().__init__()
        if isinstance(unflattened_size, str) or not all(isinstance(n, int) for n in unflattened_size):
            rule = "unflattened_size must be a tuple of ints"
            fail("type", "Unflatten(...)", f"unflattened_size={unflattened_size!r}", rule, "Unflatten(1, (2, 3))")
        self.dim, self.unflattened_size = dim, tuple(unflattened_size)

    def forward(self, input: Tensor) -> Tensor:
        dim = self.dim % input.ndim
        shape = tuple(input.shape)
        return input.reshape(shape[:dim] + self.unflattened_size + shape[dim + 1 :])

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
