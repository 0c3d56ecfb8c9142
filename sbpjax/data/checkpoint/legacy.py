"""Readers of two former checkpoint formats: Orbax arrays, and one ``.npy`` file per tensor.

    state.json, checksums.json, arrays/     version 1 of `sbpjax.checkpoint.save`: arrays in OCDBT and Zarr
    state.json, 000000.npy, 000001.npy …    `sbpjax.save`: the structure has {"": "tensor", "index": 0, "dtype": …}

The second kind has no checksums: a file that is missing or cut short is found, a flipped bit is not.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jax
import numpy as np

from .blocks import ARRAYS
from .codec import numpy_dtype
from .manifest import STATE


def is_numpy(directory: Path) -> bool:
    """Return whether a directory without a manifest is one of ``.npy`` files, and no newer one that lost it."""
    if not (directory / STATE).is_file() or (directory / ARRAYS).exists():
        return False
    try:
        count = len(_leaves(json.loads((directory / STATE).read_text(encoding="utf-8")), {}))
    except (ValueError, KeyError, TypeError, RecursionError, OSError):
        return False
    return count == len(list(directory.glob("*.npy"))) == sum(1 for _ in directory.iterdir()) - 1


def numpy_facts(document: Any) -> dict[str, Any]:
    """Return the current form of `state.json` for a structure of the second kind."""
    tensors: dict[str, Any] = {}
    return {"version": 0, "tensors": tensors, "state": _leaves(document, tensors, rename=True)}


def _leaves(value: Any, tensors: dict[str, Any], name: str = "", rename: bool = False) -> Any:
    """Collect the tensors of a structure by name; return their dict, or the structure with names in their places."""

    def walk(part: Any, name: str) -> Any:
        below = f"{name}/" if name else ""
        if isinstance(part, list):
            return [walk(v, f"{below}{i}") for i, v in enumerate(part)]
        if not isinstance(part, dict):
            return part
        kind = part.get("")
        if kind is None:
            return {k: walk(v, f"{below}{k}") for k, v in part.items()}
        if kind == "dict":
            return {"": kind, "items": [[k, walk(v, f"{below}{k}")] for k, v in part["items"]]}
        if kind == "tuple":
            return {"": kind, "items": [walk(v, f"{below}{i}") for i, v in enumerate(part["items"])]}
        if kind not in ("tensor", "array") or type(part["index"]) is not int:
            raise ValueError(f"a value of the kind {kind!r}")
        name = name if name not in tensors else f"{name}#{part['index']}"
        tensors[name] = {"file": part["index"], "dtype": part["dtype"]} | ({"index": None} if kind == "array" else {})
        return {"": kind, "name": name}

    made = walk(value, name)
    return made if rename else tensors


def read_numpy(directory: Path, facts: dict) -> np.ndarray:
    """Return an array of the second kind.

    Raises:
        ValueError, OSError, EOFError: its file is damaged.
    """
    array = np.load(directory / f"{facts['file']:06d}.npy", mmap_mode="r", allow_pickle=False)
    dtype = numpy_dtype(facts["dtype"])
    return array if array.dtype == dtype else array.view(dtype)  # bfloat16 and its like are stored as integers


def read_orbax(directory: Path, wanted: dict[int, tuple[tuple[int, ...], np.dtype, Any]]) -> dict[int, Any]:
    """Return arrays of version 1 by number.

    Args:
        directory: the checkpoint.
        wanted: shape, dtype and sharding (None: as a whole NumPy array) of each, by number.
    """
    import orbax.checkpoint as ocp  # takes a second to import

    item, options = {}, {}
    for number, (shape, dtype, sharding) in wanted.items():
        if sharding is None:
            item[str(number)] = np.zeros((), dtype)
            options[str(number)] = ocp.RestoreArgs(restore_type=np.ndarray)
            continue
        item[str(number)] = jax.ShapeDtypeStruct(shape, dtype, sharding=sharding)
        options[str(number)] = ocp.ArrayRestoreArgs(sharding=sharding, global_shape=shape, dtype=dtype)
    args = ocp.args.PyTreeRestore(item=item, restore_args=options, partial_restore=True)
    reader = ocp.Checkpointer(ocp.PyTreeCheckpointHandler(use_ocdbt=True, use_zarr3=True))
    try:
        read = reader.restore(directory / ARRAYS, args=args)
    finally:
        reader.close()
    return {number: read[str(number)] for number in wanted}
