"""Activation layers: stateless ones are generated from the table of ops, the others are defined here.

A generated layer, ``nn.ELU(alpha=1.0, inplace=False)``, keeps its options as attributes and calls its function in
`sbpjax.nn.functional` with them. Its docstring is that of the op.
"""

from __future__ import annotations

from typing import Any

from sbpjax._core.functions import nn as F
from sbpjax._core.functions.table.derive import layer_form, source_to_function
from sbpjax._core.functions.table.table import Row, layers
from sbpjax._core.functions.table.texts import LayerDocstring
from sbpjax._core.ops.dims import fail
from sbpjax._core.tensor import Tensor
from sbpjax.nn import init
from sbpjax.nn.module import Module
from sbpjax.nn.parameter import parameter


class _Options(Module):
    """An activation with options, kept as attributes of the names in `_names`."""

    _names: tuple[str, ...] = ()

    def extra_repr(self) -> str:
        if not self._names:
            return "inplace=True" if getattr(self, "inplace", False) else ""
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in self._names)


def layer_of(row: Row) -> type[Module]:
    """Return the layer of a row of the table."""
    name, arguments, options, space = layer_form(row)
    body = ["Module.__init__(self)", *[f"self.{option} = {option}" for option in options]]
    init = source_to_function("__init__", ["self", *arguments], body, {"Module": Module, **space}, f"nn.{name}")
    shown = tuple(option for option in options if option != "inplace")
    function = row.name

    def forward(self, input: Tensor) -> Tensor:
        given = {option: getattr(self, option) for option in shown}
        if getattr(self, "inplace", False):
            given["inplace"] = True
        return getattr(F, function)(input, **given)

    members = {"__init__": init, "forward": forward, "_names": shown, "__doc__": LayerDocstring(row, options)}
    return type(name, (_Options,), {**members, "__module__": __name__})


globals().update({_cls.__name__: _cls for _cls in map(layer_of, layers())})


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
            rule = f"max_val ({max_val}) must be greater than min_val ({min_val})"
            fail("assertion", "Hardtanh(...)", f"min_val={min_val}, max_val={max_val}", rule, "nn.Hardtanh(-1.0, 1.0)")
        self.min_val, self.max_val, self.inplace = min_val, max_val, inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)


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


class PReLU(_Options):
    """x where positive, else a learned slope times x.

    Args:
        num_parameters: 1, or one slope per channel.
        init: the slopes at the start.
        device: where they are made.
        dtype: their dtype.

    Returns:
        The input's shape. A split stays; a partial sum is reduced first.

    Example:
        >>> flow.nn.PReLU()(flow.tensor([-2.0, 1.0])).tolist()
        [-0.5, 1.0]
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


class Softmax2d(_Options):
    """The softmax over the channels of `(N, C, H, W)` or `(C, H, W)`."""

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim not in (3, 4):
            rule = f"Softmax2d: expected input to be 3D or 4D, got {input.ndim}D instead"
            fail("value", "Softmax2d()(x)", f"shape {list(input.shape)}", rule, "nn.Softmax(1)")
        return F.softmax(input, -3)
