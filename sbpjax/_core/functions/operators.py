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
from sbpjax._core.tensor.handle.tensor import Tensor

from .table.checks import check_divisor

binary = dispatch.binary
unary = dispatch.unary


def _reciprocal_times(x, y, /):
    """Return y / x: division with a number on the left."""
    return arithmetic.div(y, x)


def _swap_operands(fn):
    def swap(x, y, /):
        return fn(y, x)

    swap.__name__ = f"r{fn.__name__}"
    return swap


MATMUL = op_of(linalg.matmul)
_DIVISIONS = {
    "__floordiv__": op_of(arithmetic.floor_divide),
    "__rfloordiv__": Op(_swap_operands(arithmetic.floor_divide)),
    "__mod__": op_of(arithmetic.remainder),
    "__rmod__": Op(_swap_operands(arithmetic.remainder)),
}
OPS = {  # the other operators of two tensors
    "__add__": op_of(arithmetic.add),
    "__radd__": op_of(arithmetic.add),
    "__sub__": op_of(arithmetic.sub),
    "__rsub__": op_of(arithmetic.rsub),
    "__mul__": op_of(arithmetic.mul),
    "__rmul__": op_of(arithmetic.mul),
    "__truediv__": op_of(arithmetic.div),
    "__rtruediv__": Op(_reciprocal_times, name="div"),
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
    "__rlshift__": Op(_swap_operands(compare.bitwise_left_shift)),
    "__rshift__": op_of(compare.bitwise_right_shift),
    "__rrshift__": Op(_swap_operands(compare.bitwise_right_shift)),
}


def _operand(value) -> bool:
    return isinstance(value, (Tensor, bool, int, float, complex, np.generic, np.ndarray, numbers.Number))


def binary_operator(name: str):
    """Return the operator of a row of `OPS`."""
    op = OPS[name]

    def method(self, other):
        if other.__class__ is Tensor or _operand(other):
            return binary(op, self, other)
        return NotImplemented

    method.__name__ = name
    return method


def division(name: str):
    """Return an operator that raises for a division of integers by 0."""
    op, swapped, sign = _DIVISIONS[name], name.startswith("__r"), "%" if "mod" in name else "//"

    def method(self, other):
        if not _operand(other):
            return NotImplemented
        check_divisor(f"x {sign} y", *((other, self) if swapped else (self, other)))
        return binary(op, self, other)

    method.__name__ = name
    return method


def in_place(name: str):
    """Return the operator that calls a method under its name, with ``_``."""

    def method(self, other):
        return getattr(self, name)(other)

    return method


def matmul(self: Tensor, other: Tensor) -> Tensor:
    """Return ``self @ other``."""
    return binary(MATMUL, self, other) if other.__class__ is Tensor else self.matmul(other)


def rmatmul(self: Tensor, other) -> Tensor:
    """Return ``other @ self``."""
    return dispatch.run(MATMUL, (other, self))


_NEG, _ABS, _INVERT = op_of(elementwise.neg), op_of(elementwise.abs), op_of(elementwise.bitwise_not)


def negative(self: Tensor) -> Tensor:
    """Return ``-self``."""
    return unary(_NEG, self)


def absolute(self: Tensor) -> Tensor:
    """Return ``abs(self)``."""
    return unary(_ABS, self)


def invert(self: Tensor) -> Tensor:
    """Return ``~self``."""
    return unary(_INVERT, self)


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


def rpower(self: Tensor, base) -> Tensor:
    """Return ``base ** self``."""
    if not _operand(base):
        return NotImplemented
    if isinstance(base, (Tensor, np.ndarray)):
        return binary(_RPOW, self, base)
    value = number_of(base)
    return unary(op_of(powers.rpow_scalar, (("base", value),)), self)
