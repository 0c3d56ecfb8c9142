"""Reader for directories of OneFlow 0.9's ``flow.save`` that runs no code from them.

    pickled_data         a pickle of {"protocol_version": 1, "data": …}, in which a tensor is the name of a folder
    tensor_7/meta        its shape and element type, as text
    tensor_7/out         its bytes

`torch_pickle` runs the pickle with the names of this file's table: each class of it is a placeholder that checks the
state of one kind of value. After reading, the values are built from the placeholders.
"""

from __future__ import annotations

import argparse
import collections
import datetime
import os
import pathlib
import pickle
import re
import types
from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from sbpjax._core.tensor.handle import dtype as dtypes
from sbpjax._core.tensor.handle.size import Size
from sbpjax.errors import CheckpointError
from sbpjax.sbp import algebra
from sbpjax.sbp.placement import placement

from .codec import numpy_dtype
from .torch_pickle import PLAIN, Machine, Names, checked_key

PICKLE = "pickled_data"
_TYPES = {
    "kFloat": np.float32, "kDouble": np.float64, "kFloat16": np.float16, "kBFloat16": ml_dtypes.bfloat16,
    "kInt8": np.int8, "kChar": np.int8, "kInt16": np.int16, "kInt32": np.int32, "kInt64": np.int64, "kUInt8": np.uint8,
    "kUInt16": np.uint16, "kUInt32": np.uint32, "kUInt64": np.uint64, "kBool": np.bool_,
    "kComplex64": np.complex64, "kComplex128": np.complex128,
}  # fmt: skip
_META = re.compile(r"\s*(?:shape\s*\{((?:\s*dim:\s*\d{1,15})*)\s*\}\s*)?data_type:\s*(\w+)\s*")
Make = Callable[[np.ndarray], Any]


class _StandIn:
    """Placeholder for an object of a pickle: keeps the state, and `value` builds the real object."""

    state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state

    def value(self, reader: _Reader) -> Any:
        """Return the real object."""
        raise NotImplementedError


class _Tensor(_StandIn):
    def value(self, reader):
        return reader.make(reader.array(_dict(self.state)["path"]))


class _Parameter(_StandIn):
    def value(self, reader):
        return reader.parameter(reader.make(reader.array(_dict(self.state)["path"])))


class _ElementType(_StandIn):
    def value(self, reader):
        return dtypes.dtype.get(_whole(self.state))


class _Placement(_StandIn):
    def value(self, reader):
        state = _dict(self.state)
        return placement(_text(state["type"]), reader.real(state["ranks"]).tolist())


class _Sbp(_StandIn):
    def value(self, reader):
        kind, dim = self.state
        return algebra.split(_whole(dim)) if kind == "S" else {"B": algebra.broadcast, "P": algebra.partial_sum}[kind]


class _Shape(_StandIn):
    def __new__(cls, sizes: Any = ()):
        made = super().__new__(cls)
        made.state = tuple(_whole(n) for n in sizes)
        return made

    def __init__(self, sizes: Any = ()) -> None:
        pass

    def value(self, reader):
        return Size(self.state)


class _NumpyType(_StandIn):
    def __init__(self, name: Any, *options: Any) -> None:
        self.name, self.order = _text(name), "="

    def __setstate__(self, state):
        self.order = state[1] if state[1] in ("<", ">") else "="
        if state[2:5] != (None, None, None):
            raise pickle.UnpicklingError("a NumPy dtype with fields")

    def value(self, reader):
        return numpy_dtype(np.dtype(self.name).newbyteorder(self.order).str)


class _Array(_StandIn):
    def value(self, reader):
        _, shape, dtype, fortran, data = self.state
        if type(dtype) is not _NumpyType or type(data) is not bytes:
            raise pickle.UnpicklingError("an array of something else than bytes")
        order = "F" if fortran is True else "C"
        return np.frombuffer(data, dtype.value(reader)).reshape([_whole(n) for n in shape], order=order).copy()


class _Number(_StandIn):
    def __init__(self, dtype: Any, data: Any) -> None:
        if type(dtype) is not _NumpyType or type(data) is not bytes:
            raise pickle.UnpicklingError("a number of something else than bytes")
        self.dtype, self.data = dtype, data

    def value(self, reader):
        return np.frombuffer(self.data, self.dtype.value(reader), 1)[0]


class _Namespace(_StandIn):
    kind: type = argparse.Namespace

    def value(self, reader):
        return self.kind(**{_text(k): reader.real(v) for k, v in _dict(self.state or {}).items()})


class _SimpleNamespace(_Namespace):
    kind = types.SimpleNamespace


def _dict(value: Any) -> dict:
    if type(value) is not dict:
        raise pickle.UnpicklingError(f"a {type(value).__name__} in place of a dict")
    return value


def _text(value: Any) -> str:
    if type(value) is not str:
        raise pickle.UnpicklingError(f"a {type(value).__name__} in place of a text")
    return value


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise pickle.UnpicklingError(f"a {type(value).__name__} in place of an integer")
    return value


def _restrict_argument_types(kinds: tuple[type, ...], make: Callable) -> Callable:
    """Return a function that takes arguments of these classes alone."""

    def call(*arguments: Any) -> Any:
        if not all(type(a) in kinds for a in arguments):
            raise pickle.UnpicklingError(f"{make.__name__} of something else than {[k.__name__ for k in kinds]}")
        return make(*arguments)

    return call


_ZONES = (bytes, int, type(None), datetime.timezone)
_PATHS = ("PosixPath", "WindowsPath", "PurePosixPath", "PureWindowsPath", "Path", "PurePath")


def _path(name: str) -> Callable:
    kind = pathlib.PureWindowsPath if name == "PureWindowsPath" else pathlib.PurePosixPath if "Pure" in name else Path
    return _restrict_argument_types((str,), lambda *parts: kind(*parts))


FUNCTIONS: dict[str, Callable] = {
    **PLAIN,
    "numpy.core.multiarray._reconstruct": lambda *_: _Array(),
    "numpy._core.multiarray._reconstruct": lambda *_: _Array(),
    "datetime.date": _restrict_argument_types((bytes,), datetime.date),
    "datetime.datetime": _restrict_argument_types(_ZONES, datetime.datetime),
    "datetime.time": _restrict_argument_types(_ZONES, datetime.time),
    "datetime.timedelta": _restrict_argument_types((int,), datetime.timedelta),
    "datetime.timezone": _restrict_argument_types((datetime.timedelta, str), datetime.timezone),
    "builtins.range": _restrict_argument_types((int,), range),
    "builtins.slice": _restrict_argument_types((int, type(None)), slice),
    "builtins.frozenset": lambda items=(): frozenset(map(checked_key, items)),
    **{f"pathlib.{name}": _path(name) for name in _PATHS},
}
VALUES = {"numpy.ndarray": np.ndarray, "builtins.list": list, "builtins.dict": dict, "builtins.int": int}
VALUES |= {"builtins.float": float, "builtins.str": str, "builtins.set": set, "builtins.tuple": tuple}
CLASSES: dict[str, Any] = {
    "oneflow.Tensor": _Tensor, "oneflow._oneflow_internal.Tensor": _Tensor, "oneflow.nn.Parameter": _Parameter,
    "oneflow.nn.parameter.Parameter": _Parameter, "oneflow.Size": _Shape, "oneflow._oneflow_internal.Size": _Shape,
    "oneflow._oneflow_internal.dtype": _ElementType, "oneflow._oneflow_internal.placement": _Placement,
    "oneflow._oneflow_internal.sbp.sbp": _Sbp, "numpy.dtype": _NumpyType,
    "numpy.core.multiarray.scalar": _Number, "numpy._core.multiarray.scalar": _Number,
    "argparse.Namespace": _Namespace, "types.SimpleNamespace": _SimpleNamespace,
    "collections.defaultdict": collections.defaultdict, "array": _Array,  # without a dot: no pickle names it
}  # fmt: skip


class _Reader:
    """Makes the values of one directory."""

    def __init__(self, directory: Path, make: Make, parameter: Callable[[Any], Any]) -> None:
        self.directory, self.make, self.parameter = directory, make, parameter
        self._made: dict[int, tuple[Any, Any]] = {}  # so that shared objects stay shared

    def array(self, name: Any) -> np.ndarray:
        """Return the array in a folder."""
        if not re.fullmatch(r"\w{1,200}", _text(name), re.ASCII):
            raise ValueError(f"the folder {name[:200]!r}")
        folder = self.directory / name
        found = _META.fullmatch((folder / "meta").read_text(encoding="ascii"))
        if found is None or found[2] not in _TYPES:
            raise ValueError(f"{name}/meta has neither shape nor element type")
        shape = [int(n) for n in re.findall(r"\d+", found[1] or "")]
        dtype, size = np.dtype(_TYPES[found[2]]), (folder / "out").stat().st_size
        if size != prod(shape) * dtype.itemsize:
            raise ValueError(f"{name}/out has {size} bytes, {prod(shape) * dtype.itemsize} make {dtype.name}{shape}")
        return np.fromfile(folder / "out", dtype).reshape(shape)

    def real(self, value: Any) -> Any:
        """Return a value with its placeholders replaced by real objects."""
        if isinstance(value, _StandIn):
            if id(value) not in self._made:
                self._made[id(value)] = value, value.value(self)
            return self._made[id(value)][1]
        if isinstance(value, dict):
            for key, item in value.items():
                value[key] = self.real(item)
            for key, item in getattr(value, "__dict__", {}).items():
                value.__dict__[key] = self.real(item)
        elif type(value) is list:
            value[:] = [self.real(item) for item in value]
        elif type(value) is tuple:
            return tuple(self.real(item) for item in value)
        return value


def is_oneflow(path: Path) -> bool:
    """Return whether a directory is one that OneFlow wrote."""
    return (path / PICKLE).is_file()


def read_oneflow(path: str | os.PathLike, make: Make, parameter: Callable[[Any], Any] = lambda tensor: tensor) -> Any:
    """Return the object that ``oneflow.save`` wrote.

    Args:
        path: the directory.
        make: builds a tensor from its array.
        parameter: builds a parameter from its tensor.

    Raises:
        CheckpointError: the directory is damaged, or its pickle names a class that is not read.
    """
    directory = Path(path)
    try:
        names = Names(FUNCTIONS, VALUES, CLASSES)
        found = Machine((directory / PICKLE).read_bytes(), names, _rejection_error, _reject_persistent_id).load()
        if type(found) is not dict or found.get("protocol_version") != 1 or "data" not in found:
            raise ValueError("its pickle holds no protocol_version 1 and data")
        return _Reader(directory, make, parameter).real(found["data"])
    except CheckpointError:
        raise
    except Exception as error:  # a damaged pickle raises nearly anything
        raise CheckpointError(
            f"reading the directory {str(path)!r} of OneFlow",
            f"{type(error).__name__}: {str(error)[:500]}",
            "a directory as oneflow.save of OneFlow 0.9 writes it: pickled_data, and meta and out of every tensor",
            "check the path; save it again with OneFlow",
        ) from None


def _rejection_error(name: str) -> CheckpointError:
    rule = "plain values, containers, dates, paths, namespaces and OneFlow's own are read; nothing is imported or run"
    fix = "in OneFlow: save dict(value), vars(value) or object.state_dict() in its place"
    return CheckpointError("reading a directory of OneFlow", f"its pickle names {name[:200]}", rule, fix)


def _reject_persistent_id(pid: Any) -> Any:
    raise pickle.UnpicklingError("a persistent id")
