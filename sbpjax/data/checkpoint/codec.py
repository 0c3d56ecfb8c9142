"""JSON codec for plain values of Python, NumPy, OmegaConf and this library, tagged by kind, without pickle.

    {1, 2}                 {"": "set", "items": [1, 2]}
    datetime.date(…)       {"": "date", "value": "2026-11-23"}

`ENCODERS` maps an exact class to its encoder, `DECODERS` a kind to its decoder. Writing a class that is not in the
table raises an error with its name. Reading makes values of these classes alone: an `Enum` and a named tuple come back
as their own class only if the program has imported it; no file makes Python import or run anything.
"""

from __future__ import annotations

import argparse
import base64
import collections
import datetime
import decimal
import enum
import fractions
import keyword
import logging
import pathlib
import sys
import types
import uuid
import zoneinfo
from collections.abc import Callable
from typing import Any

import numpy as np

from sbpjax._core.tensor.handle import dtype as dtypes
from sbpjax._core.tensor.handle.device import device
from sbpjax._core.tensor.handle.size import Size
from sbpjax.errors import CheckpointError
from sbpjax.sbp import algebra
from sbpjax.sbp.placement import placement

log = logging.getLogger("sbpjax.checkpoint")
PLAIN = (str, int, float, bool, type(None))
Walk = Callable[[Any], Any]
Code = dict[str, Any]

_FACTORIES = {
    "None": None, "list": list, "dict": dict, "set": set, "tuple": tuple, "int": int, "float": float, "str": str,
    "bool": bool, "complex": complex, "bytes": bytes, "OrderedDict": collections.OrderedDict,
}  # fmt: skip
_PATHS = {
    c.__name__: c for c in (pathlib.PurePosixPath, pathlib.PureWindowsPath, pathlib.PosixPath, pathlib.WindowsPath)
}
_TEXTS: dict[type, str] = {decimal.Decimal: "decimal", fractions.Fraction: "fraction", uuid.UUID: "uuid"}
_NAMESPACES = {"argparse.Namespace": argparse.Namespace, "types.SimpleNamespace": types.SimpleNamespace}
_notes: set[str] = set()  # lines already logged


def placement_facts(value: placement) -> Code:
    """Return the type and ranks of a placement, and the names of its axes if they have some."""
    facts: Code = {"type": value.type, "ranks": value.ranks.tolist()}
    return facts if value.named is None else facts | {"axis_names": list(value.axis_names)}


def encode(value: Any, walk: Walk, name: str) -> Code | None:
    """Return the code of a value that is not plain, None if its class is unknown.

    Args:
        value: the value to encode.
        walk: encodes its contents.
        name: its position, for errors.
    """
    found = ENCODERS.get(type(value))
    if found is not None:
        return found(value, walk, name)
    if isinstance(value, np.generic):
        return {"": "numpy", "dtype": dtype_name(value.dtype), "value": _encode_base64(np.asarray(value).tobytes())}
    if isinstance(value, np.dtype):
        return {"": "numpy.dtype", "value": dtype_name(value)}
    if isinstance(value, enum.Enum):
        return {"": "enum", "class": _full_name(type(value)), "name": value.name, "value": walk(value.value)}
    if isinstance(value, algebra.sbp):
        return {"": "sbp", "value": algebra.name(value.code)}
    if isinstance(value, tuple) and hasattr(type(value), "_fields"):
        items = [walk(v) for v in value]
        return {"": "namedtuple", "class": _full_name(type(value)), "fields": list(value._fields), "items": items}
    config = sys.modules.get("omegaconf")
    if config is not None and isinstance(value, (config.DictConfig, config.ListConfig)):
        return {"": "omegaconf", "value": walk(config.OmegaConf.to_container(value, resolve=False))}
    return None


def decode(code: Code, walk: Walk) -> Any:
    """Return the value of a code; ``walk`` decodes its contents.

    Raises:
        CheckpointError: its kind is not known.
    """
    decoder = DECODERS.get(code[""])
    if decoder is None:
        rule = f"this version of sbpjax reads {', '.join(sorted(DECODERS))}"
        raise CheckpointError("reading a checkpoint", f"a value of the kind {code['']!r}", rule, "update sbpjax")
    return decoder(code, walk)


def dtype_name(dtype: np.dtype) -> str:
    """Return the name of a NumPy dtype as it is written: ``float32``, ``bfloat16``, ``<U5``.

    Raises:
        CheckpointError: it holds objects or fields.
    """
    if dtype.kind in "USmM":
        return dtype.str
    if dtype.hasobject or dtype.fields is not None:
        rule = "arrays of numbers, booleans, strings and times are stored"
        raise CheckpointError("saving a checkpoint", f"a NumPy dtype {dtype}", rule, "array.tolist()")
    return dtype.name


def numpy_dtype(name: str) -> np.dtype:
    """Return the NumPy dtype of a name that `dtype_name` gave."""
    if not isinstance(name, str):
        raise TypeError(f"a dtype {name!r}")
    found = getattr(dtypes, name, None) if name.isidentifier() else None
    result = found.np if isinstance(found, dtypes.dtype) else np.dtype(name)
    if result.hasobject or result.fields is not None:
        raise TypeError(f"a dtype {name!r}")
    return result


def note(text: str) -> None:
    """Log a line once per process."""
    if text not in _notes:
        _notes.add(text)
        log.warning(text)


def _full_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _find_class(full: str, kind: type) -> Any:
    """Return a class by its full name if the program has imported it and it is of a kind, else None."""
    module, _, name = full.rpartition(".")
    found = getattr(sys.modules.get(module), name, None)
    return found if isinstance(found, type) and issubclass(found, kind) else None


def _encode_base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _pairs(value: dict, walk: Walk) -> list:
    return [[walk(k), walk(v)] for k, v in value.items()]


def _dict(code: Code, walk: Walk) -> list[tuple]:
    return [(walk(k), walk(v)) for k, v in code["items"]]


def _encode_default(value: Any, walk: Walk, name: str) -> Code:
    factory = next((n for n, f in _FACTORIES.items() if f is value.default_factory), None)
    if factory is None:
        seen, known = f"{name}: its default_factory is {value.default_factory!r}", ", ".join(_FACTORIES)
        rule = f"a defaultdict is stored with one of the factories {known}"
        raise CheckpointError("saving a checkpoint", seen, rule, "store dict(value)")
    return {"": "defaultdict", "factory": factory, "items": _pairs(value, walk)}


def _encode_time(value: Any, walk: Walk, name: str) -> Code:
    code: Code = {"": type(value).__name__, "value": value.isoformat()}
    zone = getattr(value, "tzinfo", None)
    if isinstance(zone, zoneinfo.ZoneInfo) and zone.key:
        code |= {"value": value.replace(tzinfo=None).isoformat(), "zone": zone.key, "fold": value.fold}
    elif zone is not None and type(zone) is not datetime.timezone:
        rule = "time zones are those of datetime.timezone and zoneinfo.ZoneInfo"
        raise CheckpointError("saving a checkpoint", f"{name}: a time zone {zone!r}", rule, "value.isoformat()")
    return code


def _decode_time(kind: Any) -> Callable[[Code, Walk], Any]:
    def decode(code: Code, walk: Walk) -> Any:
        value = kind.fromisoformat(code["value"])
        zone = code.get("zone")
        return value if zone is None else value.replace(tzinfo=zoneinfo.ZoneInfo(zone), fold=code["fold"])

    return decode


def _decode_numpy(code: Code, walk: Walk) -> Any:
    return np.frombuffer(base64.b64decode(code["value"], validate=True), numpy_dtype(code["dtype"]), 1)[0]


def _decode_enum(code: Code, walk: Walk) -> Any:
    kind = _find_class(code["class"], enum.Enum)
    if kind is not None and code["name"] in kind.__members__:
        return kind.__members__[code["name"]]
    note(f"a checkpoint holds members of {code['class']}, which is not imported: they are read as their values")
    return walk(code["value"])


def _decode_namedtuple(code: Code, walk: Walk) -> Any:
    fields, values = tuple(code["fields"]), [walk(v) for v in code["items"]]
    kind = _find_class(code["class"], tuple)
    if kind is None or getattr(kind, "_fields", None) != fields:
        name = str(code["class"]).rpartition(".")[2]
        if not name.isidentifier() or keyword.iskeyword(name):
            raise ValueError(f"a named tuple {name!r}")
        kind = collections.namedtuple(name, fields)  # it checks the fields; no class of a file is imported
    return tuple.__new__(kind, values)


def _decode_omegaconf(code: Code, walk: Walk) -> Any:
    value = walk(code["value"])
    try:
        from omegaconf import OmegaConf  # optional: only those who saved configurations need it
    except ImportError:
        note("a checkpoint holds OmegaConf configurations; omegaconf is not installed: they are read as plain ones")
        return value
    return OmegaConf.create(value)


def _decode_namespace(code: Code, walk: Walk) -> Any:
    return _NAMESPACES[code["class"]](**walk(code["value"]))


def _decode_sbp(code: Code, walk: Walk) -> Any:
    text = code["value"]
    return algebra.split(int(text[1:])) if text[:1] == "S" else {"B": algebra.broadcast, "P": algebra.partial_sum}[text]


ENCODERS: dict[type, Callable[[Any, Walk, str], Code]] = {
    tuple: lambda v, walk, _: {"": "tuple", "items": [walk(x) for x in v]},
    set: lambda v, walk, _: {"": "set", "items": [walk(x) for x in v]},
    frozenset: lambda v, walk, _: {"": "frozenset", "items": [walk(x) for x in v]},
    Size: lambda v, walk, _: {"": "Size", "items": [int(x) for x in v]},
    collections.deque: lambda v, walk, _: {"": "deque", "items": [walk(x) for x in v], "maxlen": v.maxlen},
    collections.OrderedDict: lambda v, walk, _: {"": "OrderedDict", "items": _pairs(v, walk)},
    collections.Counter: lambda v, walk, _: {"": "Counter", "items": _pairs(v, walk)},
    collections.defaultdict: _encode_default,
    complex: lambda v, walk, _: {"": "complex", "value": [v.real, v.imag]},
    bytes: lambda v, walk, _: {"": "bytes", "value": _encode_base64(v)},
    bytearray: lambda v, walk, _: {"": "bytearray", "value": _encode_base64(bytes(v))},
    range: lambda v, walk, _: {"": "range", "value": [v.start, v.stop, v.step]},
    slice: lambda v, walk, _: {"": "slice", "items": [walk(v.start), walk(v.stop), walk(v.step)]},
    datetime.date: _encode_time,
    datetime.datetime: _encode_time,
    datetime.time: _encode_time,
    datetime.timedelta: lambda v, walk, _: {"": "timedelta", "value": [v.days, v.seconds, v.microseconds]},
    dtypes.dtype: lambda v, walk, _: {"": "dtype", "value": v.name},
    device: lambda v, walk, _: {"": "device", "value": str(v)},
    placement: lambda v, walk, _: {"": "placement", **placement_facts(v)},
}
ENCODERS |= {c: lambda v, walk, _: {"": "path", "class": type(v).__name__, "value": str(v)} for c in _PATHS.values()}
ENCODERS |= {c: lambda v, walk, _: {"": _TEXTS[type(v)], "value": str(v)} for c in _TEXTS}
ENCODERS |= {
    c: lambda v, walk, _: {"": "namespace", "class": _full_name(type(v)), "value": walk(dict(vars(v)))}
    for c in _NAMESPACES.values()
}

DECODERS: dict[str, Callable[[Code, Walk], Any]] = {
    "dict": lambda c, walk: dict(_dict(c, walk)),
    "tuple": lambda c, walk: tuple(walk(x) for x in c["items"]),
    "set": lambda c, walk: {walk(x) for x in c["items"]},
    "frozenset": lambda c, walk: frozenset(walk(x) for x in c["items"]),
    "Size": lambda c, walk: Size(int(x) for x in c["items"]),
    "deque": lambda c, walk: collections.deque([walk(x) for x in c["items"]], c["maxlen"]),
    "OrderedDict": lambda c, walk: collections.OrderedDict(_dict(c, walk)),
    "Counter": lambda c, walk: collections.Counter(dict(_dict(c, walk))),
    "defaultdict": lambda c, walk: collections.defaultdict(_FACTORIES[c["factory"]], _dict(c, walk)),
    "complex": lambda c, walk: complex(*c["value"]),
    "bytes": lambda c, walk: base64.b64decode(c["value"], validate=True),
    "bytearray": lambda c, walk: bytearray(base64.b64decode(c["value"], validate=True)),
    "range": lambda c, walk: range(*c["value"]),
    "slice": lambda c, walk: slice(*(walk(x) for x in c["items"])),
    "date": _decode_time(datetime.date),
    "datetime": _decode_time(datetime.datetime),
    "time": _decode_time(datetime.time),
    "timedelta": lambda c, walk: datetime.timedelta(*c["value"]),
    "decimal": lambda c, walk: decimal.Decimal(c["value"]),
    "fraction": lambda c, walk: fractions.Fraction(c["value"]),
    "uuid": lambda c, walk: uuid.UUID(c["value"]),
    "path": lambda c, walk: _PATHS[c["class"]](c["value"]),
    "namespace": _decode_namespace,
    "enum": _decode_enum,
    "namedtuple": _decode_namedtuple,
    "numpy": _decode_numpy,
    "numpy.dtype": lambda c, walk: numpy_dtype(c["value"]),
    "omegaconf": _decode_omegaconf,
    "dtype": lambda c, walk: dtypes.as_dtype(c["value"]),
    "device": lambda c, walk: device(c["value"]),
    "placement": lambda c, walk: placement(c["type"], c["ranks"], axis_names=c.get("axis_names")),
    "sbp": _decode_sbp,
}
