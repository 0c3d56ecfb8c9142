"""Manifest of an exported graph: inputs, outputs and contents of its files, as JSON.

A graph that takes ``{"ids": x}`` and returns a named tuple is written as

    {"structure": ["dict", ["ids"], [null]], "leaves": [{"path": "batch['ids']", "shape": [8, 64], …}]}
    {"structure": ["namedtuple", "Out", ["loss", "logits"], [null, null]], …}

Nothing in it names code to import: a named tuple or dataclass comes back as one made anew, of the same name and fields.
"""

from __future__ import annotations

import dataclasses
import json
import platform
from collections import OrderedDict, defaultdict, namedtuple
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from sbpjax._core import naming
from sbpjax._core.tracing import tree
from sbpjax.errors import ExportError
from sbpjax.sbp import algebra

from .manifest_check import check

FORMAT, VERSION = "sbpjax.graph", 2
MANIFEST, PROGRAM, WEIGHTS = "manifest.json", "program.jax_export", "weights.safetensors"
SIGNATURE = "manifest.sig"  # only of an export with a key
# The program in other forms, `sbpjax.graph.export.other_forms`; not read by `load_graph`.
OTHER_FORMS = ("program.mlir", "program.mlirbc", "program.hlo.pb", "model.onnx")
FILES = (MANIFEST, PROGRAM, WEIGHTS, SIGNATURE, *OTHER_FORMS)

_PLAIN = (type(None), bool, int, float, str)
# Dtypes that every reader of safetensors with NumPy knows.
_NATIVE = {
    "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "bfloat16", "float32",
    "float64", "complex64",
}  # fmt: skip
_FACTORIES = {"list": list, "dict": dict, "int": int, "float": float, "str": str, "set": set}
_KEYS = {
    "name": str, "format_version": int, "packages": dict, "program": dict, "weights": dict, "inputs": dict,
    "outputs": dict, "state": dict,
}  # fmt: skip


def structure_json(structure: Any, operation: str) -> Any:
    """Return a structure of `_core.tracing.tree` as JSON.

    Raises:
        ExportError: a container is of a kind that cannot be written down.
    """
    if structure is tree.LEAF:
        return None
    kind, keys, children = structure
    inner = [structure_json(child, operation) for child in children]
    if kind is list or kind is tuple:
        return [kind.__name__, inner]
    if kind is dict or kind is OrderedDict:
        return [kind.__name__, _plain_keys(keys, operation), inner]
    if kind is defaultdict:
        factory = keys[0]
        name = None if factory is None else getattr(factory, "__name__", "")
        if factory is not None and _FACTORIES.get(name or "") is not factory:
            raise _unwritable(operation, f"a defaultdict that makes its defaults by {factory!r}")
        return ["defaultdict", name, _plain_keys(keys[1:], operation), inner]
    fields = getattr(kind, "_fields", None)
    if issubclass(kind, tuple) and fields is not None:
        return ["namedtuple", kind.__name__, list(fields), inner]
    if dataclasses.is_dataclass(kind):
        return ["dataclass", kind.__name__, list(keys), inner]
    raise _unwritable(operation, f"a container of type {kind.__name__}")


def structure_of(found: Any) -> Any:
    """Return the structure that `structure_json` wrote."""
    if found is None:
        return tree.LEAF
    kind, *rest, inner = found
    children = tuple([structure_of(child) for child in inner])
    if kind in ("list", "tuple"):
        return tree.Node({"list": list, "tuple": tuple}[kind], None, children)
    if kind in ("dict", "OrderedDict"):
        return tree.Node({"dict": dict, "OrderedDict": OrderedDict}[kind], tuple(rest[0]), children)
    if kind == "defaultdict":
        factory = None if rest[0] is None else _FACTORIES[rest[0]]
        return tree.Node(defaultdict, (factory, *rest[1]), children)
    name, fields = rest
    if kind == "namedtuple":
        # A class of the same name and fields: the user's own may not be importable where the graph is loaded.
        return tree.Node(namedtuple(name, fields), None, children)
    if kind == "dataclass":
        return tree.Node(dataclasses.make_dataclass(name, fields), tuple(fields), children)
    raise ValueError(f"a container of kind {kind!r}")


def _plain_keys(keys: tuple, operation: str) -> list:
    for key in keys:
        if key.__class__ not in _PLAIN:
            raise _unwritable(operation, f"a dict with the key {key!r} of type {type(key).__name__}")
    return list(keys)


def static_json(value: Any, path: str, operation: str) -> dict:
    """Return an argument or result that is no tensor as JSON."""
    if value.__class__ not in _PLAIN:
        raise _unwritable(operation, f"{path or 'a result'} is a {type(value).__name__}")
    text = repr(value) if value.__class__ is float else value  # JSON has no nan and inf
    return {"path": path, "static": type(value).__name__, "value": text}


def static_of(found: dict) -> Any:
    """Return the value written by `static_json`."""
    return float(found["value"]) if found["static"] == "float" else found["value"]


def tensor_json(path: str, shape, dtype, layout) -> dict:
    """Return the facts of a tensor as JSON; dims that are free are their symbol's name."""
    return {
        "path": path,
        "shape": [d if d.__class__ is int else int(d) if isinstance(d, np.integer) else str(d) for d in shape],
        "dtype": np.dtype(dtype).name,
        "sbp": None if layout is None else [algebra.name(c) for c in layout.codes],
    }


def packages() -> dict[str, str]:
    """Return the versions of the packages that made an export."""
    found = {"python": platform.python_version()}
    for name in ("sbpjax", "jax", "jaxlib", "numpy", "safetensors"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:  # run from a source tree
            found[name] = naming.VERSION if name == "sbpjax" else "unknown"
    return found


# -- weights -----------------------------------------------------------------------------------------------------------


def storable(array: np.ndarray) -> tuple[np.ndarray, str | None]:
    """Return an array that a safetensors file takes, and its stored type if not its own.

    A dtype that NumPy's reader does not know (float8, complex128) is stored as its bytes, in one dim more.
    """
    # safetensors writes the bytes of an array in memory order, regardless of strides.
    array = np.array(array, order="C", copy=None)
    if array.dtype.name in _NATIVE:
        return array, None
    return array.reshape(*array.shape, 1).view(np.uint8), "uint8"


def restore_array(array: np.ndarray, dtype: np.dtype, stored_as: str | None) -> np.ndarray:
    """Return the array given to `storable`."""
    return array if stored_as is None else np.ascontiguousarray(array).view(dtype)[..., 0]


# -- the file ----------------------------------------------------------------------------------------------------------


def encode_manifest(content: dict) -> bytes:
    """Return the bytes of a manifest."""
    return (json.dumps(content, indent=1, allow_nan=False) + "\n").encode()


def read_manifest_bytes(folder: Path, operation: str) -> bytes:
    """Return the bytes of the manifest of a folder.

    Raises:
        ExportError: a file of the export is missing.
    """
    if not folder.is_dir():
        seen = "a file" if folder.exists() else "no such directory"
        fix = f'load_graph("{folder.parent}")' if folder.is_file() else f'graph.export("{folder}", x)'
        raise ExportError(operation, seen, "an exported graph is a directory", fix)
    missing = [name for name in (MANIFEST, PROGRAM, WEIGHTS) if not (folder / name).is_file()]
    if missing:
        raise ExportError(
            operation,
            f"no {' and no '.join(missing)}; there are {sorted(p.name for p in folder.iterdir())[:8]}",
            f"an exported graph is {MANIFEST}, {PROGRAM} and {WEIGHTS}",
            "copy the whole directory, or export again",
        )
    return (folder / MANIFEST).read_bytes()


def read(text: bytes, operation: str) -> dict:
    """Parse a manifest.

    Raises:
        ExportError: it is none, or of another version.
    """
    try:
        content = json.loads(text)
    # JSON nested a thousand deep is a RecursionError of Python's parser.
    except (ValueError, RecursionError) as error:
        raise damaged_error(operation, f"{MANIFEST} is no JSON: {error}") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        seen = content.get("format") if isinstance(content, dict) else type(content).__name__
        raise damaged_error(operation, f"a manifest of format {seen!r}, not {FORMAT!r}")
    version = content.get("format_version")
    if version != VERSION and isinstance(version, int):
        made = content["packages"] if isinstance(content.get("packages"), dict) else {}
        raise ExportError(
            operation,
            f"format version {version}, written by sbpjax {made.get('sbpjax', 'unknown')}",
            f"this sbpjax reads version {VERSION}",
            "load it with the sbpjax that wrote it, or export again with this one",
        )
    wrong = [key for key, kind in _KEYS.items() if not isinstance(content.get(key), kind)]
    if wrong:
        raise damaged_error(operation, f"{MANIFEST} without a valid {', '.join(wrong)}")
    try:
        check(content)
    except (ValueError, OverflowError) as error:
        raise damaged_error(operation, f"{MANIFEST} is not as it was written: {error}") from None
    return content


def damaged_error(operation: str, seen: str) -> ExportError:
    """Return the error for files that do not fit together."""
    return ExportError(
        operation, seen, "the files of an export are written together and fit each other", "export again"
    )


def _unwritable(operation: str, seen: str) -> ExportError:
    return ExportError(
        operation,
        seen,
        "inputs and outputs of an exported graph are tensors, None, bool, int, float and str in lists, tuples, "
        "dicts, named tuples and dataclasses, since it is loaded without the classes of the model",
        "take tensors and numbers apart in a graph for export: def build(self, ids, scale): ...",
    )
