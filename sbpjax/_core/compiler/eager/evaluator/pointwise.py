"""Pointwise primitives in NumPy: arithmetic, comparisons, casts and special functions.

NumPy and XLA differ where C leaves a result open: integer division by zero, shifts by more than the width, and casts
of floats that do not fit. XLA's result is computed here. 16-bit floats are computed in float32 and rounded once, as
XLA does on CPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from sbpjax._core.runtime.optional_packages import LazyModule

special = LazyModule("scipy.special")  # 0.15 s, and few programs have one of its functions

RULES: dict[str, Callable] = {}


def rule(*names: str, plain: Callable | None = None, kinds: str = "fc") -> Callable[[Callable], Callable]:
    """Register a function ``(*arrays, **params)`` for primitives.

    Args:
        names: of the primitives.
        plain: a function of the arrays alone that does the same for dtypes of some kinds, but 16-bit floats.
        kinds: of these dtypes.
    """

    def register(function: Callable) -> Callable:
        if plain is not None:
            function.plain = dict.fromkeys(kinds, plain)  # type: ignore[attr-defined]
        for name in names:
            RULES[name] = function
        return function

    return register


def plain_of(rule: Callable, dtype: Any) -> Callable | None:
    """Return the plain function of a rule for a dtype, None if there is none."""
    return None if is_half(dtype) else getattr(rule, "plain", {}).get(dtype.kind)


def is_half(dtype: Any) -> bool:
    """Return whether a dtype is a float of 16 bits or fewer, for which NumPy has no arithmetic of its own."""
    return dtype.itemsize <= 2 and jax.dtypes.issubdtype(dtype, np.floating)


def _compute_in_float32(function: Callable) -> Callable:
    """Return a rule for a function of floats that computes 16-bit ones in float32."""

    def compute(*arrays, **_):
        dtype = arrays[0].dtype
        if not is_half(dtype):
            return function(*arrays)
        return function(*[x.astype(np.float32) for x in arrays]).astype(dtype)

    return compute


def _in_float64(function: Callable) -> Callable:
    """Return a rule for a function of floats that is computed in float64, for its accuracy in float32."""

    def compute(*arrays, **_):
        return np.asarray(function(*[x.astype(np.float64) for x in arrays])).astype(arrays[0].dtype)

    return compute


# XLA's quotient of polynomials of x², 1e-7 from erf for float32: a tenth of the time of SciPy's.
_ERF_ENDS = np.float32(3.832506856900711)
_ERF_ABOVE = np.float32((0.00022905065861350646, 0.0034082910107109506, 0.050955695062380861, 0.18520832239976145,
                         1.128379143519084))  # fmt: skip
_ERF_BELOW = np.float32((-1.1791602954361697e-7, 0.000023547966471313185, 0.0010179625278914885, 0.014070470171167667,
                         0.11098505178285362, 0.49746925110067538, 1.0))  # fmt: skip
_BLOCK = 1 << 13  # elements that stay in a core's cache


def _erf(x):
    if x.dtype != np.float32:
        return special.erf(x)
    out = np.ravel(np.clip(x, -_ERF_ENDS, _ERF_ENDS))
    for start in range(0, out.size, _BLOCK):
        part = out[start : start + _BLOCK]
        squares = part * part
        part *= _polynomial(_ERF_ABOVE, squares)
        part /= _polynomial(_ERF_BELOW, squares)
    return out.reshape(x.shape)


def _polynomial(coefficients, x):
    out = x * coefficients[0]
    out += coefficients[1]
    for coefficient in coefficients[2:]:
        out *= x
        out += coefficient
    return out


_EXACT: dict[str, Callable] = {
    "add": np.add, "add_any": np.add, "sub": np.subtract, "mul": np.multiply, "max": np.maximum, "min": np.minimum,
    "neg": np.negative, "abs": np.abs, "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
    "gt": np.greater, "ge": np.greater_equal, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "not": np.invert, "real": np.real, "imag": np.imag, "square": np.square, "conj": np.conjugate,
    "nextafter": np.nextafter,
}  # fmt: skip
_FLOAT: dict[str, Callable] = {
    "exp": np.exp, "log": np.log, "log1p": np.log1p, "sqrt": np.sqrt,
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "atan2": np.arctan2, "floor": np.floor, "ceil": np.ceil, "cbrt": np.cbrt,
    "erf": _erf, "erfc": lambda x: special.erfc(x), "rsqrt": lambda x: x.dtype.type(1) / np.sqrt(x),
    "logistic": lambda x: x.dtype.type(1) / (x.dtype.type(1) + np.exp(-x)),
}  # fmt: skip
_SPECIAL: dict[str, Callable] = {
    "erf_inv": lambda x: special.erfinv(x), "lgamma": lambda x: np.where(x == -np.inf, np.inf, special.gammaln(x)),
    "bessel_i0e": lambda x: special.i0e(x), "bessel_i1e": lambda x: special.i1e(x),
}  # fmt: skip
for name, function in _EXACT.items():
    rule(name, plain=function, kinds="biufc")(lambda *arrays, _function=function, **_: _function(*arrays))
for name, function in _FLOAT.items():
    rule(name, plain=function)(_compute_in_float32(function))
RULES |= {name: _in_float64(function) for name, function in _SPECIAL.items()}


@rule("expm1")
def expm1(x, **_):
    if x.dtype.kind == "c":  # NumPy's of infinity is not a number
        return np.where(x.imag == 0, np.expm1(x.real), np.expm1(x)).astype(x.dtype)
    return _compute_in_float32(np.expm1)(x)


@rule("stop_gradient", "copy", "name")
def copy(x, **_):
    return x


@rule("div", plain=np.divide)
def div(x, y, **_):
    if x.dtype.kind not in "iu":
        return _compute_in_float32(np.divide)(x, y)
    zero = y == 0
    quotient = _truncate_quotient(x, np.where(zero, 1, y).astype(y.dtype))
    return np.where(zero, np.array(-1).astype(x.dtype), quotient)


@rule("rem", plain=np.fmod)
def rem(x, y, **_):
    if x.dtype.kind not in "iu":
        return _compute_in_float32(np.fmod)(x, y)
    zero = y == 0
    safe = np.where(zero, 1, y).astype(y.dtype)
    return np.where(zero, x, x - _truncate_quotient(x, safe) * safe)


def _truncate_quotient(x, y):
    """Return an integer quotient rounded towards zero; the smallest integer by -1 is itself."""
    if x.dtype.kind == "u":
        return x // y
    quotient = x // np.where(y == -1, 1, y).astype(y.dtype)
    inexact = (x - quotient * y != 0) & ((x < 0) != (y < 0))
    return np.where(y == -1, np.negative(x), quotient + inexact.astype(x.dtype))


@rule("sign")
def sign(x, **_):
    if x.dtype.kind == "c":
        size = np.abs(x)
        return np.where(size == 0, 0, x / np.where(size == 0, 1, size)).astype(x.dtype)
    return np.sign(x) if x.dtype.kind in "iu" else np.copysign(np.sign(x), x) + 0 * np.isnan(x).astype(x.dtype)


@rule("round")
def round_(x, rounding_method, **_):
    if int(rounding_method) == 1:
        return np.rint(x.astype(np.float32)).astype(x.dtype) if is_half(x.dtype) else np.rint(x)
    wide = x.astype(np.float32) if is_half(x.dtype) else x
    whole = np.trunc(wide)
    away = np.where(np.abs(wide - whole) >= 0.5, whole + np.copysign(1, wide).astype(wide.dtype), whole)
    return np.copysign(away, wide).astype(x.dtype)


@rule("is_finite")
def is_finite(x, **_):
    return np.isfinite(x)


@rule("complex")
def complex_(real, imag, **_):
    out = np.empty(
        np.broadcast_shapes(real.shape, imag.shape), np.complex64 if real.dtype == np.float32 else np.complex128
    )
    out.real, out.imag = real, imag
    return out


@rule("integer_pow")
def integer_pow(x, y, **_):
    if is_half(x.dtype):
        return integer_pow(x.astype(np.float32), y).astype(x.dtype)
    if y == 0:
        return np.ones_like(x)
    result, square, left = None, x, abs(y)
    while left:
        if left & 1:
            result = square if result is None else result * square
        left >>= 1
        if left:
            square = square * square
    return x.dtype.type(1) / result if y < 0 else result


@rule("pow")
def pow_(x, y, **_):
    if x.dtype.kind in "iu":  # by an integer: products that wrap around
        result, left = np.ones_like(x), y.copy()
        while (left > 0).any():
            result = np.where(left & 1, result * x, result)
            x, left = x * x, left >> 1
        return result
    if x.dtype.kind == "c":
        return np.power(x, y)
    return _compute_in_float32(np.power)(x, y.astype(x.dtype))


@rule("shift_left")
def shift_left(x, y, **_):
    return np.where(_is_shift_in_range(x, y), x << _shift(x, y), 0).astype(x.dtype)


@rule("shift_right_logical")
def shift_right_logical(x, y, **_):
    unsigned = x.view(f"u{x.dtype.itemsize}")
    return (
        np.where(_is_shift_in_range(x, y), (unsigned >> _shift(unsigned, y).view(unsigned.dtype)), 0)
        .astype(unsigned.dtype)
        .view(x.dtype)
    )


@rule("shift_right_arithmetic")
def shift_right_arithmetic(x, y, **_):
    if x.dtype.kind == "u":  # the highest bit is filled in there, too
        return shift_right_arithmetic(x.view(f"i{x.dtype.itemsize}"), y.view(f"i{y.dtype.itemsize}")).view(x.dtype)
    return np.where(_is_shift_in_range(x, y), x >> _shift(x, y), np.where(x < 0, -1, 0)).astype(x.dtype)


def _is_shift_in_range(x, y):
    return (y.view(f"u{y.dtype.itemsize}") if y.dtype.kind == "i" else y) < 8 * x.dtype.itemsize


def _shift(x, y):
    return np.where(_is_shift_in_range(x, y), y, 0).astype(x.dtype)


@rule("population_count")
def population_count(x, **_):
    return np.bitwise_count(x.view(f"u{x.dtype.itemsize}")).astype(x.dtype)


@rule("clz")
def clz(x, **_):
    bits = 8 * x.dtype.itemsize
    left = x.view(f"u{x.dtype.itemsize}").astype(np.uint64)
    length = np.zeros(x.shape, np.int64)
    for step in (32, 16, 8, 4, 2, 1):
        high = left >> np.uint64(step)
        length += np.where(high != 0, step, 0)
        left = np.where(high != 0, high, left)
    return (bits - length - (left != 0)).astype(x.dtype)


@rule("select_n")
def select_n(which, *cases, **_):
    if which.dtype.kind == "b":
        return _select(which, cases[1], cases[0])
    return np.choose(np.clip(which, 0, len(cases) - 1), cases)


def _select(which, x, y):
    """Return ``np.where(which, x, y)``; of many elements by their bits, since its branches cost 5 ns an element."""
    if which.size < 4096 or x.dtype.itemsize > 8:
        return np.where(which, x, y)
    bits = np.dtype(f"i{x.dtype.itemsize}")
    mask = np.negative(which.view("i1"), dtype=bits)
    out = np.bitwise_xor(x.view(bits), y.view(bits))
    out = np.bitwise_and(out, mask, out=out if out.shape == mask.shape else None)
    return np.bitwise_xor(out, y.view(bits), out=out).view(x.dtype)


@rule("clamp")
def clamp(low, x, high, **_):
    return np.minimum(np.maximum(x, low), high)


@rule("convert_element_type")
def convert_element_type(x, new_dtype, **_):
    old, new = x.dtype, np.dtype(new_dtype)
    if old == new:
        return x
    if new.kind == "b":
        return x != 0
    if new.kind in "iu" and jax.dtypes.issubdtype(old, np.inexact):
        wide = np.trunc(x.real.astype(np.float64))
        info = np.iinfo(new)
        inside = (wide > info.min) & (wide < info.max)
        ends = np.where(wide > 0, info.max, info.min).astype(new)
        whole = np.where(inside, wide, 0).astype(new)
        return np.where(np.isnan(wide), np.array(0, new), np.where(inside, whole, ends))
    if old.kind == "c" and new.kind != "c":
        x = x.real
    return x.astype(new)


@rule("bitcast_convert_type")
def bitcast_convert_type(x, new_dtype, **_):
    new = np.dtype(new_dtype)
    if new.itemsize == x.dtype.itemsize:
        return np.ascontiguousarray(x).view(new).reshape(x.shape)
    if new.itemsize < x.dtype.itemsize:
        return np.ascontiguousarray(x)[..., None].view(new).reshape(*x.shape, x.dtype.itemsize // new.itemsize)
    return np.ascontiguousarray(x).view(new).reshape(x.shape[:-1])


# The results of all but this one have the shape that NumPy broadcasts the operands to.
POINTWISE = frozenset(RULES) - {"bitcast_convert_type"}
