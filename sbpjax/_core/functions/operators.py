"""Operators of `Tensor`: arithmetic, comparison, conversion to Python numbers.

Hot operators call `dispatch.binary` and `dispatch.unary` with an `Op` made here once. A number on the left side of
``-``, ``/`` or ``**`` has an op of its own.
"""

from __future__ import annotations

import numbers

import numpy as np

from sbpjax._core.ops import arithmetic, compare, elementwise, powers
from sbpjax._core.ops.linalg import products as linalg
from sbpjax._core.tensor.dispatch import dispatch
from sbpjax._core.tensor.dispatch.op import Op, op_of
from sbpjax._core.tensor.handle.plain_values import number_of
from sbpjax._core.tensor.handle.tensor import Tensor, attach

from .table.checks import divisor

binary = dispatch.binary
unary = dispatch.unary

ADD = op_of(arithmetic.add)
SUB = op_of(arithmetic.sub)
MUL = op_of(arithmetic.mul)
DIV = op_of(arithmetic.div)
RSUB = op_of(arithmetic.rsub)
NEG = op_of(elementwise.neg)
MATMUL = op_of(linalg.matmul)


def _reciprocal_times(x, y, /):
    """Return y / x: division with a number on the left."""
    return arithmetic.div(y, x)


def _swap_operands(fn):
    def swap(x, y, /):
        return fn(y, x)

    swap.__name__ = f"r{fn.__name__}"
    return swap


RDIV = Op(_reciprocal_times, name="div")


def _operand(value) -> bool:
    return isinstance(value, (Tensor, bool, int, float, complex, np.generic, np.ndarray, numbers.Number))


def _operator(op: Op):
    def method(self, other):
        if other.__class__ is Tensor or _operand(other):
            return binary(op, self, other)
        return NotImplemented

    return method


def _dividing(op: Op, sign: str, swapped: bool = False):
    """Return an operator that raises for a division of integers by 0."""

    def method(self, other):
        if not _operand(other):
            return NotImplemented
        divisor(f"x {sign} y", *((other, self) if swapped else (self, other)))
        return binary(op, self, other)

    method.__name__ = f"__{'r' * swapped}{'mod' if sign == '%' else 'floordiv'}__"
    return method


def _in_place(name: str):
    def method(self, other):
        return getattr(self, name)(other)

    return method


def _matmul(self: Tensor, other: Tensor) -> Tensor:
    return binary(MATMUL, self, other) if other.__class__ is Tensor else self.matmul(other)


def _attach() -> None:
    forward = {
        "__add__": ADD,
        "__radd__": ADD,
        "__sub__": SUB,
        "__rsub__": RSUB,
        "__mul__": MUL,
        "__rmul__": MUL,
        "__truediv__": DIV,
        "__rtruediv__": RDIV,
        "__floordiv__": op_of(arithmetic.floor_divide),
        "__rfloordiv__": Op(_swap_operands(arithmetic.floor_divide)),
        "__mod__": op_of(arithmetic.remainder),
        "__rmod__": Op(_swap_operands(arithmetic.remainder)),
        "__eq__": op_of(compare.eq),
        "__ne__": op_of(compare.ne),
        "__lt__": op_of(compare.lt),
        "__le__": op_of(compare.le),
        "__gt__": op_of(compare.gt),
        "__ge__": op_of(compare.ge),
        "__and__": op_of(compare.bitwise_and),
        "__rand__": op_of(compare.bitwise_and),
        "__or__": op_of(compare.bitwise_or),
        "__ror__": op_of(compare.bitwise_or),
        "__xor__": op_of(compare.bitwise_xor),
        "__rxor__": op_of(compare.bitwise_xor),
        "__lshift__": op_of(compare.bitwise_left_shift),
        "__rshift__": op_of(compare.bitwise_right_shift),
    }
    for name, op in forward.items():
        method = _operator(op)
        method.__name__ = name
        setattr(Tensor, name, method)
    for name, sign in (("floordiv", "//"), ("mod", "%")):
        attach(**{f"__{name}__": _dividing(forward[f"__{name}__"], sign)})
        attach(**{f"__r{name}__": _dividing(forward[f"__r{name}__"], sign, True)})
    attach(__neg__=lambda self: unary(NEG, self))
    attach(__pos__=lambda self: self)
    absolute, invert = op_of(elementwise.abs), op_of(elementwise.bitwise_not)
    attach(__abs__=lambda self: unary(absolute, self))
    attach(__invert__=lambda self: unary(invert, self))
    attach(__pow__=power)
    attach(__rpow__=_rpow)
    attach(__hash__=lambda self: id(self))
    for name in ("add", "sub", "mul", "pow"):
        attach(**{f"__i{name}__": _in_place(f"{name}_")})
    attach(__itruediv__=_in_place("div_"), __ifloordiv__=_in_place("floor_divide_"), __imod__=_in_place("remainder_"))
    attach(__iand__=_in_place("bitwise_and_"), __ior__=_in_place("bitwise_or_"), __ixor__=_in_place("bitwise_xor_"))
    attach(__matmul__=_matmul, __rmatmul__=lambda self, other: dispatch.run(MATMUL, (other, self)))


_SQUARE = op_of(powers.pow_scalar, (("exponent", 2),))
_POW = op_of(powers.pow)
_RPOW = Op(_swap_operands(powers.pow))


def power(self: Tensor, exponent) -> Tensor:
    """Return ``self ** exponent``; a number as exponent is a static attribute, whose gradient needs no logarithm."""
    if exponent.__class__ is int and exponent == 2:
        return unary(_SQUARE, self)
    if isinstance(exponent, Tensor):
        return binary(_POW, self, exponent)
    if not _operand(exponent):
        return NotImplemented
    if isinstance(exponent, np.ndarray):
        return binary(_POW, self, exponent)
    value = number_of(exponent)
    return unary(op_of(powers.pow_scalar, (("exponent", value),)), self)


def _rpow(self: Tensor, base) -> Tensor:
    if not _operand(base):
        return NotImplemented
    if isinstance(base, (Tensor, np.ndarray)):
        return binary(_RPOW, self, base)
    value = number_of(base)
    return unary(op_of(powers.rpow_scalar, (("base", value),)), self)


_attach()
