"""Plain values as bytes and back; bytes that are no value; types that are refused."""

import collections
import enum
import math
import os
import pickle
import random
import subprocess
import sys

import ml_dtypes
import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sbpjax._core.serialization import encoding
from sbpjax.errors import EncodingError, EncodingTypeError

HERE = os.path.dirname(__file__)
PLAIN = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.complex_numbers() | st.text() | st.binary()
)  # fmt: skip
KEYS = st.recursive(PLAIN, lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3), max_leaves=4)
VALUES = st.recursive(
    PLAIN,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(KEYS, inner, max_size=4)
        | st.sets(KEYS, max_size=4)
    ),
    max_leaves=20,
)


def same(a, b):
    """Compare types all the way down, and NaN as equal."""
    if type(a) is not type(b):
        return False
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return same(list(a), list(b)) and same(list(a.values()), list(b.values()))
    if isinstance(a, float):
        return a == b or math.isnan(a) and math.isnan(b)
    if isinstance(a, complex):
        return same(a.real, b.real) and same(a.imag, b.imag)
    if isinstance(a, (np.ndarray, np.generic)):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, (set, frozenset)):
        return encoding.encode(a) == encoding.encode(b)  # whose order is one for all
    return a == b


@given(VALUES)
def test_values_come_back(value):
    assert same(encoding.decode(encoding.encode(value)), value)


@pytest.mark.parametrize("value", [
    0, -1, 2**63 - 1, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1, 10**400, -(10**400), [2**80, (-(2**70),)], {2**90: 1},
    math.nan, math.inf, -math.inf, -0.0, complex(math.nan, -math.inf), "\ud800 \0 ü", b"\xff" * 70000, [], (), {},
    set(), {(1, "a"): [None], frozenset({2}): {3}}, [[[[()]]]], {"a": {"b": ({1: 2},)}}, [True, 1, 1.0],
])  # fmt: skip
def test_corners(value):
    assert same(encoding.decode(encoding.encode(value)), value)


@pytest.mark.parametrize("name", list(encoding._DTYPES))
def test_arrays_and_numbers(name):
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    for array in (np.arange(6).astype(dtype).reshape(2, 3), np.zeros((3, 0), dtype), np.ones((), dtype)):
        made = encoding.decode(encoding.encode({"a": (array, array.T[::-1] if array.ndim else array)}))["a"]
        assert same(made[0], array) and (not array.ndim or same(made[1], array.T[::-1])) and made[0].flags.writeable
    assert same(encoding.decode(encoding.encode(np.ones((), dtype)[()])), np.ones((), dtype)[()])
    native = np.arange(1, 4).astype(dtype)
    assert same(encoding.decode(encoding.encode(native.astype(dtype.newbyteorder(">")))), native)


class Level(enum.IntEnum):
    ONE = 1


class Text(str):
    __slots__ = ()


@pytest.mark.parametrize("value, where, kind", [
    ([1, {"a": (object(),)}], "value[1]['a'][0]", "builtins.object"),
    (Level.ONE, "value", "Level"),
    ({"x": Text("y")}, "value['x']", "Text"),
    (collections.OrderedDict(a=1), "value", "collections.OrderedDict"),
    (collections.namedtuple("Pair", "a b")(1, 2), "value", "Pair"),
    (bytearray(b"a"), "value", "bytearray"),
    (memoryview(b"a"), "value", "memoryview"),
    (msgpack.ExtType(1, b""), "value", "ExtType"),
    (msgpack.Timestamp(1), "value", "Timestamp"),
    (np.array([object()]), "value", "object"),
    (np.array(["a"]), "value", "<U1"),
    (np.ma.array([1]), "value", "MaskedArray"),
    (print, "value", "builtin_function_or_method"),
    ({(object,): 1}, "a key of value", "builtins.type"),
])  # fmt: skip
def test_other_types_are_refused_by_name(value, where, kind):
    with pytest.raises(EncodingTypeError) as raised:
        encoding.encode(value)
    assert f"seen: {where}" in str(raised.value) and kind in str(raised.value) and isinstance(raised.value, TypeError)


def nested(depth, value=None):
    for _ in range(depth):
        value = (value,)
    return value


def test_depth_and_size():
    assert encoding.decode(encoding.encode(nested(64))) == nested(64)
    circle = []
    circle.append(circle)
    for value in (nested(65), circle, [nested(64)]):
        with pytest.raises(EncodingError, match="more than 64 levels"):
            encoding.encode(value)
    with pytest.raises(EncodingError, match="where at most 100 are taken"):
        encoding.encode("x" * 100, limit=100)
    with pytest.raises(EncodingError, match="where at most 100 are taken"):
        encoding.decode(b"x" * 101, limit=100)


BAD = {
    "nothing": b"",
    "truncated": encoding.encode((1, "abc"))[:-1],
    "two values": encoding.encode(1) * 2,
    "a pickle": pickle.dumps(print),
    "deep": b"\x91" * 100_000 + b"\xc0",
    "deep below the parser's limit": b"\x91" * 900 + b"\xc0",
    "a map": msgpack.packb({"a": 1}),
    "an empty map": msgpack.packb({}),
    "a time": msgpack.packb(msgpack.Timestamp(1)),
    "an unknown mark": msgpack.packb([msgpack.ExtType(77, b"")]),
    "a mark with bytes": msgpack.packb([msgpack.ExtType(1, b"x")]),
    "a mark alone": msgpack.packb(msgpack.ExtType(1, b"")),
    "a mark in second place": msgpack.packb([1, msgpack.ExtType(1, b"")]),
    "an unhashable key": msgpack.packb([msgpack.ExtType(2, b""), [1], 2]),
    "the same key twice": msgpack.packb([msgpack.ExtType(2, b""), 1, 1, 2, 2]),
    "a key without a value": msgpack.packb([msgpack.ExtType(2, b""), 1, 1, 2]),
    "an array of objects": msgpack.packb([msgpack.ExtType(7, b""), "object", [1], b"\0" * 8]),
    "too few bytes": msgpack.packb([msgpack.ExtType(7, b""), "int64", [1 << 40], b"\0" * 8]),
    "a negative size": msgpack.packb([msgpack.ExtType(7, b""), "int8", [-1, -8], b"\0" * 8]),
    "an overflow": msgpack.packb([msgpack.ExtType(7, b""), "int8", [1 << 32, 1 << 32], b""]),
    "empty but huge": msgpack.packb([msgpack.ExtType(7, b""), "int8", [0, 1 << 63, 1 << 63], b""]),
    "a bool of 2": msgpack.packb([msgpack.ExtType(7, b""), "bool", [1], b"\2"]),
    "a list that is not there": b"\xdd\xff\xff\xff\xff\xc0",
    "a text that is not there": b"\xdb\xff\xff\xff\xff\xc0",
}


@pytest.mark.parametrize("name", BAD)
def test_bad_bytes(name):
    with pytest.raises(EncodingError, match="decoding a value") as raised:
        encoding.decode(BAD[name])
    assert "\n  fix:  " in str(raised.value)


def seeds():
    array = np.arange(12.0).reshape(3, 4)
    return [encoding.encode(v) for v in (
        [1, (2.5, {"a": {3, 2**70}, (1, 2): array}), complex(1, 2), np.float32(3), array.astype(ml_dtypes.bfloat16)],
        {"step": 3, "loss": [math.nan, math.inf], "who": ("rank", b"\0\1", None, True, frozenset({1, "x"}))},
        nested(20, [np.zeros((2, 0)), np.array(True), 2**100]),
    )]  # fmt: skip


def mutated(data, draw):
    out = bytearray(data)
    for _ in range(draw.randrange(1, 6)):
        at, kind = draw.randrange(len(out) + 1), draw.randrange(5)
        if kind == 0 and at < len(out):
            out[at] ^= 1 << draw.randrange(8)
        elif kind == 1:
            mark = b"\xc7\0" + bytes([draw.randrange(12)])
            out[at:at] = draw.choice([b"\xdd\xff\xff\xff\xff", b"\xd4\x01\0", mark, b"\x91"])
        elif kind == 2:
            del out[at : at + draw.randrange(1, 9)]
        elif kind == 3 and at < len(out):
            out[at] = draw.randrange(256)
        else:
            other = draw.randrange(len(out) + 1)
            out[at:at] = out[other : other + draw.randrange(40)]
    return bytes(out)


def fuzz(rounds):
    """Decode mutated bytes: a value of the table's types, which is written and read again alike, or EncodingError."""
    draw, whole = random.Random(7), 0
    starts = seeds()
    for _ in range(rounds):
        try:
            value = encoding.decode(mutated(draw.choice(starts), draw))
        except EncodingError:
            continue
        whole += 1
        assert same(encoding.decode(encoding.encode(value)), value)
    return whole


def test_mutated_bytes():
    assert fuzz(3_000) > 30


@pytest.mark.exhaustive
def test_many_mutated_bytes_in_little_memory():
    code = "import resource as r, test_encoding as t; r.setrlimit(r.RLIMIT_AS, (6 << 30,) * 2); t.fuzz(200_000)"
    done = subprocess.run([sys.executable, "-c", code], cwd=HERE, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]


def test_importing_sbpjax_does_not_import_messagepack():
    code = "import sys, sbpjax; sys.exit('msgpack' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=120).returncode == 0


def test_decoding_imports_and_calls_nothing():
    """Under an audit hook that refuses imports, files, processes and code."""
    code = """
import sys, msgpack, numpy, random
sys.path.insert(0, sys.argv[1])
import test_encoding as t
from sbpjax.errors import EncodingError
inputs = [t.mutated(random.Random(i).choice(t.seeds()), random.Random(i)) for i in range(500)] + list(t.BAD.values())
seen = []
sys.addaudithook(lambda event, args: seen.append(event))
for data in inputs:
    try: t.encoding.decode(data)
    except EncodingError: pass
kinds = ("import", "exec", "compile", "open", "os", "subprocess", "ctypes", "pickle", "marshal", "socket")
bad = {e for e in seen if e.split(".")[0] in kinds}
assert not bad, bad
"""
    done = subprocess.run([sys.executable, "-c", code, HERE], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
