"""Element types: `sbpjax.float32` etc., `finfo`, `iinfo`, and the default dtype.

A `dtype` stands for one NumPy dtype (`.np`): JAX and NumPy accept it wherever they accept a dtype, it equals the
NumPy dtype, and it prints as ``sbpjax.float32``.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

from sbpjax._core import naming
from sbpjax.errors import ImmutableError, OpTypeError


class dtype:
    """An element type.

    Args:
        name: its name, e.g. ``"float32"``.
        np_type: the NumPy scalar type behind it.
    """

    __slots__ = ("dtype", "is_complex", "is_floating_point", "is_signed", "itemsize", "name", "np")

    def __init__(self, name: str, np_type) -> None:
        found = np.dtype(np_type)
        facts = {
            "name": name,
            "np": found,
            "dtype": found,  # the attribute that NumPy and JAX look for
            "itemsize": found.itemsize,
            "is_floating_point": found.kind == "f" or (found.kind == "V" and "float" in name),
            "is_complex": found.kind == "c",
            "is_signed": found.kind not in "ub",
        }
        for fact, value in facts.items():
            object.__setattr__(self, fact, value)

    def __setattr__(self, name: str, value: object) -> None:
        """Raise: every tensor of the process shares its element types."""
        raise ImmutableError(
            f"{self!r}.{name} = {value!r}", repr(self), "an element type never changes", "x.to(sbpjax.float32)"
        )

    def __delattr__(self, name: str) -> None:
        """Raise, as setting does."""
        self.__setattr__(name, None)

    @staticmethod
    def get(number: int) -> dtype:
        """Return the element type that has a number in OneFlow's files."""
        if number not in _NUMBERS:
            known = ", ".join(f"{k} {v}" for k, v in _NUMBERS.items())
            raise OpTypeError(f"dtype.get({number})", repr(number), f"known are {known}", "dtype.get(2)")
        return as_dtype(_NUMBERS[number])

    @property
    def bytes(self) -> int:
        """The size of one element."""
        return self.itemsize

    def to_complex(self) -> dtype:
        """Return the complex element type of this precision."""
        return complex128 if self.name in ("float64", "complex128") else complex64

    def to_real(self) -> dtype:
        """Return the real element type of this precision."""
        return {"complex64": float32, "complex128": float64}.get(self.name, self)

    def __repr__(self) -> str:
        return f"{naming.package()}.{self.name}"

    def __eq__(self, other) -> bool:
        if self is other:
            return True
        if isinstance(other, dtype) or other is None:
            return False
        try:
            return self.np == other
        except TypeError:
            return False

    def __hash__(self) -> int:
        return hash(self.np)

    def __reduce__(self):
        # Unpickled to the one object of its name: dtypes are compared by identity where it is quick.
        return as_dtype, (self.name,)


float16 = half = dtype("float16", np.float16)
bfloat16 = dtype("bfloat16", ml_dtypes.bfloat16)
float32 = float_ = dtype("float32", np.float32)
float64 = double = dtype("float64", np.float64)
float8_e4m3fn = dtype("float8_e4m3fn", ml_dtypes.float8_e4m3fn)
float8_e5m2 = dtype("float8_e5m2", ml_dtypes.float8_e5m2)
int8 = char = dtype("int8", np.int8)
int16 = short = dtype("int16", np.int16)
int32 = int_ = dtype("int32", np.int32)
int64 = long = dtype("int64", np.int64)
uint8 = byte = dtype("uint8", np.uint8)
uint16 = dtype("uint16", np.uint16)
uint32 = dtype("uint32", np.uint32)
uint64 = dtype("uint64", np.uint64)
bool_ = dtype("bool", np.bool_)
complex64 = cfloat = dtype("complex64", np.complex64)
complex128 = cdouble = dtype("complex128", np.complex128)

# The codes of OneFlow's `DataType`, by which its files and some of its functions name dtypes.
_NUMBERS = {
    1: "int8", 2: "float32", 3: "float64", 4: "int8", 5: "int32", 6: "int64", 7: "uint8", 9: "float16", 11: "bfloat16",
    12: "bool", 13: "uint16", 14: "uint32", 15: "uint64", 17: "int16", 20: "complex64", 21: "complex128",
}  # fmt: skip
ALL = (
    float16, bfloat16, float32, float64, float8_e4m3fn, float8_e5m2, int8, int16, int32, int64,
    uint8, uint16, uint32, uint64, bool_, complex64, complex128,
)  # fmt: skip
_BY_NP = {d.np: d for d in ALL}
_PYTHON = {float: None, int: int64, bool: bool_, complex: complex64}


def as_dtype(value) -> dtype:
    """Return the `dtype` for a dtype, NumPy or JAX dtype, Python type or name.

    Raises:
        TypeError: no such element type.
    """
    if value.__class__ is dtype:
        return value
    if isinstance(value, type) and value in (float, int, bool, complex):  # np.dtype("int64") == int, too
        return _PYTHON[value] or _default
    found = _BY_NP.get(value)
    if found is None:
        try:
            found = _BY_NP.get(np.dtype(value))
        except TypeError:
            found = None
    if found is None:
        known = ", ".join(d.name for d in ALL)
        rule = f"it is no element type of sbpjax; known are {known}"
        raise OpTypeError(f"dtype={value!r}", f"{value!r}", rule, "dtype=sbpjax.float32")
    return found


def as_np_dtype(value) -> np.dtype | None:
    """Return the NumPy dtype of anything `as_dtype` accepts; None stays None."""
    return None if value is None else as_dtype(value).np


_default = float32


def get_default_dtype() -> dtype:
    """Return the dtype that Python floats become."""
    return _default


def set_default_dtype(d) -> None:
    """Set the dtype that Python floats become.

    Raises:
        TypeError: the dtype is not a floating-point one.
    """
    global _default
    d = as_dtype(d)
    if not d.is_floating_point:
        rule = "only floating-point types are supported as the default type"
        raise OpTypeError(f"set_default_dtype({d!r})", f"{d!r}", rule, "set_default_dtype(sbpjax.float32)")
    _default = d


class finfo:
    """Numeric limits of a floating-point dtype."""

    def __init__(self, type=None) -> None:
        d = _default if type is None else as_dtype(type)
        if not (d.is_floating_point or d.is_complex):
            raise OpTypeError(f"finfo({d!r})", f"{d!r}", "finfo needs a floating-point dtype", f"iinfo({d!r})")
        info = ml_dtypes.finfo(d.np)
        self.bits, self.dtype = info.bits, d.name
        self.eps, self.max, self.min = float(info.eps), float(info.max), float(info.min)
        self.tiny = self.smallest_normal = float(info.smallest_normal)
        self.resolution = float(f"1e-{info.precision}")

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )


class iinfo:
    """Numeric limits of an integer dtype."""

    def __init__(self, type) -> None:
        d = as_dtype(type)
        if d.np.kind not in "iu":
            raise OpTypeError(f"iinfo({d!r})", f"{d!r}", "iinfo needs an integer dtype", f"finfo({d!r})")
        info = np.iinfo(d.np)
        self.bits, self.max, self.min, self.dtype = info.bits, int(info.max), int(info.min), d.name

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"
