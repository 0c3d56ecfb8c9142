r"""Safe serialization of plain values: a closed table of types, so that reading never runs code.

Messages between processes, and metadata filed beside tensors, are small values of Python and NumPy. Pickle would carry
them, and with them any call that a stranger wants to be made. Here only these types exist:

    None  bool  int  float  complex  str  bytes  tuple  list  dict  set  frozenset  numpy arrays and numbers

    encode((3, {"loss": float("nan")}))  ->  b'\x93\xc7\x00\x01\x03\x93...'  ->  (3, {'loss': nan})

The bytes are MessagePack. A type that it lacks is an array that begins with a mark, an empty extension that names the
type: ``[mark 1, 3, ...]`` is a tuple. Every type is taken exactly: an Enum, a namedtuple or an OrderedDict is refused
by its name, because it would come back as something else. Maps and other extensions of MessagePack are refused as well.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from sbpjax._core.runtime.optional_packages import LazyModule
from sbpjax.errors import EncodingError, EncodingTypeError

msgpack = LazyModule("msgpack")  # takes longer to import than most of sbpjax's modules


MAX_DEPTH = 64
MAX_BYTES = 1 << 30
_TUPLE, _DICT, _SET, _FROZENSET, _INTEGER, _COMPLEX, _ARRAY, _NUMBER = range(1, 9)
_AS_THEY_ARE = frozenset((type(None), bool, int, float, str, bytes))  # MessagePack has them; large integers see _large
_ENTRY = {_TUPLE: "[{}]", _SET: "{{{}}}", _FROZENSET: "{{{}}}"}
_DTYPES: dict[str, np.dtype] = {
    name: np.dtype(getattr(ml_dtypes, name, name))
    for name in (
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float16", "float32", "float64", "complex64", "complex128", "bfloat16", "int2", "int4", "uint2", "uint4"),
        *("float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2"),
        *("float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn"),
    )
}


def encode(value: Any, limit: int = MAX_BYTES) -> bytes:
    """Return a plain value as bytes.

    Args:
        value: of the types above, nested at most 64 deep.
        limit: the most bytes that it may take.
    """
    try:
        data = msgpack.packb(
            _encode_value(value, "value", 0), default=_encode_large_int, unicode_errors="surrogatepass"
        )
    except (OverflowError, ValueError) as error:
        if isinstance(error, EncodingError):
            raise
        raise _encoding_error("encoding a value", f"{type(error).__name__}: {error}") from None
    if len(data) > limit:
        raise _encoding_error("encoding a value", f"{len(data)} bytes, where at most {limit} are taken")
    return data


def decode(data: bytes, limit: int = MAX_BYTES) -> Any:
    """Return the value that `encode` made bytes of; runs no code of the bytes' choice."""
    if len(data) > limit:
        raise _encoding_error("decoding a value", f"{len(data)} bytes, where at most {limit} are taken")
    options: dict[str, Any] = {"ext_hook": _mark, "object_pairs_hook": _no_map, "unicode_errors": "surrogatepass"}
    try:
        return _decode_value(msgpack.unpackb(data, **options), 0)
    except EncodingError:
        raise
    except Exception as error:  # bytes that are no value end in errors of MessagePack, NumPy and Python itself
        raise _encoding_error("decoding a value", f"{type(error).__name__}: {str(error)[:200]}") from None


def _encoding_error(operation: str, seen: str) -> EncodingError:
    rule = f"a plain value of at most {MAX_DEPTH} levels, as sbpjax._core.serialization.encoding.encode writes it"
    return EncodingError(operation, seen, rule, "send less at once, or look at who wrote these bytes")


# ----------------------------------------------------------------------------------------------------------- writing


@functools.cache
def _make_mark(code: int) -> Any:
    return msgpack.ExtType(code, b"")


def _encode_large_int(value: Any) -> list:
    """Return an integer of more than 64 bits, for which MessagePack calls this; nothing else comes here."""
    if type(value) is not int:
        raise _encoding_error("encoding a value", f"a {type(value).__name__}")
    return [_make_mark(_INTEGER), value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)]


def _encode_value(value: Any, where: str, depth: int) -> Any:
    """Return the value in MessagePack's types: numbers, texts, bytes, lists, and marks."""
    kind = type(value)
    if kind in _AS_THEY_ARE:
        return value
    if depth >= MAX_DEPTH:
        raise _encoding_error("encoding a value", f"{where[:80]}…: more than {MAX_DEPTH} levels")
    if kind is list:
        return _entries(value, where, depth)
    write = _WRITERS.get(kind)
    if write is None and issubclass(kind, np.generic):
        write = _number
    if write is None:
        raise EncodingTypeError(
            "encoding a value",
            f"{where} is a {kind.__module__}.{kind.__qualname__}",
            "only None, bool, int, float, complex, str, bytes, tuple, list, dict, set, frozenset and NumPy arrays "
            "and numbers are written, each of exactly that type: reading them runs no code",
            "convert it first: tensor.numpy(), dict(x), list(x), str(path), vars(obj)",
        )
    return write(value, where, depth)


def _entries(values: Any, where: str, depth: int) -> list:
    if _AS_THEY_ARE.issuperset(map(type, values)):
        return list(values)
    return [_encode_value(v, f"{where}[{i}]", depth + 1) for i, v in enumerate(values)]


def _tuple(value: tuple, where: str, depth: int) -> list:
    return [_make_mark(_TUPLE), *_entries(value, where, depth)]


def _dict(value: dict, where: str, depth: int) -> list:
    found = [_make_mark(_DICT), *_entries(value, f"a key of {where}, list(keys)", depth)]
    if _AS_THEY_ARE.issuperset(map(type, value.values())):
        return found + list(value.values())
    return found + [_encode_value(v, f"{where}[{k!r}]", depth + 1) for k, v in value.items()]


def _set(value: set | frozenset, where: str, depth: int) -> list:
    """Return a set in an order that does not depend on the process."""
    packed = msgpack.packb
    entries = _entries(value, f"{where}, list(set)", depth)
    entries.sort(key=lambda v: packed(v, default=_encode_large_int, unicode_errors="surrogatepass"))
    return [_make_mark(_SET if type(value) is set else _FROZENSET), *entries]


def _complex(value: complex, where: str, depth: int) -> list:
    return [_make_mark(_COMPLEX), value.real, value.imag]


def _name(dtype: np.dtype, where: str) -> str:
    if dtype.name not in _DTYPES:
        seen = f"{where} is of NumPy's dtype {dtype}"
        rule = f"arrays of {', '.join(_DTYPES)}"
        raise EncodingTypeError("encoding a value", seen, rule, "convert it with astype, or to a list")
    return dtype.name


def _array(value: np.ndarray, where: str, depth: int) -> list:
    name = _name(value.dtype, where)
    return [_make_mark(_ARRAY), name, list(value.shape), _to_little_endian(value, _DTYPES[name]).tobytes()]


def _number(value: np.generic, where: str, depth: int) -> list:
    name = _name(value.dtype, where)
    return [_make_mark(_NUMBER), name, _to_little_endian(np.asarray(value), _DTYPES[name]).tobytes()]


def _to_little_endian(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    return array.astype(dtype.newbyteorder("<"), copy=False)


_WRITERS: dict[type, Callable[[Any, str, int], list]] = {
    tuple: _tuple,
    dict: _dict,
    set: _set,
    frozenset: _set,
    complex: _complex,
    np.ndarray: _array,
}


# ----------------------------------------------------------------------------------------------------------- reading


class _Mark:
    __slots__ = ("code",)

    def __init__(self, code: int) -> None:
        self.code = code


def _mark(code: int, data: bytes) -> _Mark:
    if data or code not in _READERS:
        raise _encoding_error("decoding a value", f"an extension {code} of {len(data)} bytes")
    return _Mark(code)


def _no_map(pairs: Any) -> Any:
    raise _encoding_error("decoding a value", "a map of MessagePack, which is never written")


def _decode_value(found: Any, depth: int) -> Any:
    """Return the value that MessagePack's lists and marks encode."""
    kind = type(found)
    if kind in _AS_THEY_ARE:
        return found
    if kind is not list:
        raise _encoding_error("decoding a value", f"a {kind.__name__} out of its place")
    if depth >= MAX_DEPTH:
        raise _encoding_error("decoding a value", f"more than {MAX_DEPTH} levels")
    mark = found[0] if found else None
    if type(mark) is _Mark:
        return _READERS[mark.code](_read(found[1:], depth))
    return _read(found, depth)


def _read(values: list, depth: int) -> list:
    if _AS_THEY_ARE.issuperset(map(type, values)):
        return values
    return [_decode_value(v, depth + 1) for v in values]


def _read_dict(values: list) -> dict:
    half, odd = divmod(len(values), 2)
    result = dict(zip(values[:half], values[half:], strict=True))
    if odd or len(result) != half:
        raise ValueError("a key without a value, or the same key twice")
    return result


def _read_integer(values: list) -> int:
    (data,) = values
    if type(data) is not bytes:
        raise ValueError("an integer that is no bytes")
    return int.from_bytes(data, "little", signed=True)


def _read_complex(values: list) -> complex:
    real, imag = values
    if type(real) is not float or type(imag) is not float:
        raise ValueError("a complex number of no floats")
    return complex(real, imag)


def _read_array(values: list) -> np.ndarray:
    name, shape, data = values
    dtype = _DTYPES[name]
    if type(data) is not bytes or type(shape) is not list or any(type(n) is not int or n < 0 for n in shape):
        raise ValueError("an array without a shape or bytes")
    count = functools.reduce(int.__mul__, shape, 1)
    if count * dtype.itemsize != len(data):
        raise ValueError(f"{len(data)} bytes for {name}{shape}")
    if name == "bool" and data.strip(b"\0\1"):
        raise ValueError("a bool that is neither 0 nor 1")
    flat = np.frombuffer(data, dtype.newbyteorder("<")).astype(dtype)  # a copy, which may be written to
    return flat.reshape(shape)


def _read_number(values: list) -> np.generic:
    name, data = values
    return _read_array([name, [], data])[()]


_READERS: dict[int, Callable[[list], Any]] = {
    _TUPLE: tuple,
    _DICT: _read_dict,
    _SET: set,
    _FROZENSET: frozenset,
    _INTEGER: _read_integer,
    _COMPLEX: _read_complex,
    _ARRAY: _read_array,
    _NUMBER: _read_number,
}
