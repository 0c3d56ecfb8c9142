"""Checkpoints: nested dicts and lists of tensors and plain values, as a directory that holds no code.

    state.json        {"step": 300, "model": {"token.weight": {"tensor": 0, ...}, ...}}
    000000.npy        the logical value of tensor 0

A tensor is stored by its logical value, so a run saved on eight devices in one layout loads on one device in
another. It comes back as a local tensor, or, for the state of global modules, as a global one:

    model.load_state_dict(utils.load(path, global_src_rank=0)["model"])

Reading executes nothing: JSON and NumPy without pickle. A directory appears under its name only when it is
complete, so an interrupted `save` leaves the previous checkpoint as it was.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import sbpjax
from sbpjax.autograd.checkpoint import checkpoint as checkpoint  # PyTorch's module of this name has it
from sbpjax.errors import CheckpointError, OpTypeError, message
from sbpjax.sbp import broadcast, placement
from sbpjax.tensor import Tensor
from sbpjax.tensor import dtype as dtypes
from sbpjax.world import current

from .segments import checkpoint_sequential as checkpoint_sequential

_STATE = "state.json"
_PLAIN = (str, int, float, bool, type(None))


def save(obj: Any, path: str | os.PathLike, global_dst_rank: int | None = None) -> None:
    """Write an object as the directory `path`; an older one there is replaced at the end.

    Args:
        obj: dicts (string or integer keys), lists and tuples of tensors, NumPy arrays and plain values.
        path: the directory.
        global_dst_rank: the rank that writes global tensors, as OneFlow has it; here process 0 writes, and all
            processes call this together, so the number is only checked.

    Raises:
        CheckpointError: something in it is none of these.
        PlacementError: there is no such rank.
    """
    if global_dst_rank is not None:
        placement("cpu", [global_dst_rank])
    target = Path(path)
    arrays: list[np.ndarray] = []
    document = _pack(obj, arrays, "state")  # on all processes: they read global tensors together
    if current().rank == 0:
        _write(target, document, arrays)
    current().exchange(f"save(state, {str(path)!r})", None)  # nobody goes on before it is there


def _write(target: Path, document: Any, arrays: list[np.ndarray]) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = target.with_name(target.name + ".new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    for index, array in enumerate(arrays):
        np.save(fresh / f"{index:06d}.npy", array, allow_pickle=False)
    (fresh / _STATE).write_text(json.dumps(document))
    old = target.with_name(target.name + ".old")
    if target.exists():  # otherwise a crash came between these two renames, and the checkpoint is the old one
        shutil.rmtree(old, ignore_errors=True)
        target.rename(old)
    fresh.rename(target)
    shutil.rmtree(old, ignore_errors=True)


def load(
    path: str | os.PathLike,
    map_location: Any = None,
    *,
    global_src_rank: int | None = None,
    support_pytorch_format: bool = True,
) -> Any:
    """Return what `save` wrote; tensors come back as local ones unless a placement or a rank is given.

    A file is read as one of ``torch.save`` with a plain state in it: no code in it runs.

    Args:
        path: the directory, or the file.
        map_location: a device for local tensors, or a placement: then every tensor is global there, in broadcast.
        global_src_rank: a CPU rank: then every tensor is global on that rank alone. `load_state_dict` and
            `to_global` bring it from there to any placement and sbp, so no other device ever holds the whole value.
        support_pytorch_format: read PyTorch's files.

    Raises:
        CheckpointError: there is no checkpoint at `path`.
        OpTypeError: both are given, or `map_location` is neither device nor placement.
    """
    place = _placing(map_location, global_src_rank)
    source = Path(path)
    if source.is_file() and support_pytorch_format:
        from sbpjax.checkpoint.torch_file import read_torch  # which builds on this room's neighbours

        return _with_tensors(read_torch(source), place)
    if not (source / _STATE).exists() and source.with_name(source.name + ".old").exists():
        source = source.with_name(source.name + ".old")  # `save` was interrupted between its two renames
    if not (source / _STATE).exists():
        raise CheckpointError(
            message(
                f"loading the checkpoint {str(path)!r}",
                f"no {_STATE} in that directory",
                "a checkpoint is a directory written by sbpjax.utils.save",
                "check the path",
            )
        )
    return _unpack(json.loads((source / _STATE).read_text()), source, place)


def _with_tensors(value: Any, make: Callable[[np.ndarray], Tensor]) -> Any:
    """Return nested dicts, lists and tuples with tensors in the place of arrays."""
    if isinstance(value, np.ndarray):
        return make(value)
    if isinstance(value, dict):
        return type(value)((key, _with_tensors(each, make)) for key, each in value.items())
    if isinstance(value, (list, tuple)):
        return type(value)(_with_tensors(each, make) for each in value)
    return value


def _placing(map_location: Any, global_src_rank: int | None) -> Callable[[np.ndarray], Tensor]:
    """Return how `load` makes a tensor of a stored array."""
    if global_src_rank is not None and map_location is None:
        map_location = placement("cpu", [global_src_rank])
    elif global_src_rank is not None or not isinstance(map_location, (str, sbpjax.device, placement, type(None))):
        raise OpTypeError(
            message(
                "loading a checkpoint",
                f"map_location={map_location!r}, global_src_rank={global_src_rank!r}",
                "map_location is a device or a placement, and stands alone",
                "load(path), load(path, placement) or load(path, global_src_rank=0)",
            )
        )
    if isinstance(map_location, placement):
        everywhere = [broadcast] * len(map_location.hierarchy)
        return lambda array: sbpjax.tensor(array, placement=map_location, sbp=everywhere)
    return lambda array: sbpjax.tensor(array, device=map_location)


def _pack(value: Any, arrays: list[np.ndarray], where: str) -> Any:
    if isinstance(value, (Tensor, np.ndarray)):
        kind = "tensor" if isinstance(value, Tensor) else "array"
        dtype = value.dtype.name
        array = np.ascontiguousarray(value.detach().numpy() if isinstance(value, Tensor) else value)
        if array.dtype.kind == "V":  # bfloat16 and its like have no name in NumPy's format
            array = array.view(np.dtype(f"u{array.dtype.itemsize}"))
        arrays.append(array.reshape(value.shape))
        return {"": kind, "index": len(arrays) - 1, "dtype": dtype}
    if isinstance(value, dict):
        items = [[key, _pack(item, arrays, f"{where}[{key!r}]")] for key, item in value.items()]
        if all(isinstance(key, str) and key for key in value):
            return dict(items)
        if all(isinstance(key, (str, int)) for key in value):
            return {"": "dict", "items": items}
    elif isinstance(value, tuple):
        return {"": "tuple", "items": [_pack(item, arrays, f"{where}[{i}]") for i, item in enumerate(value)]}
    elif isinstance(value, list):
        return [_pack(item, arrays, f"{where}[{i}]") for i, item in enumerate(value)]
    elif isinstance(value, _PLAIN):
        return value
    elif isinstance(value, np.generic):
        return value.item()
    raise CheckpointError(
        message(
            "saving a checkpoint",
            f"{where} is a {type(value).__name__}",
            "a checkpoint holds dicts with string or integer keys, lists, tuples, tensors, arrays and plain values",
            "store its state as one of these, e.g. object.state_dict()",
        )
    )


def _unpack(value: Any, source: Path, place: Callable[[np.ndarray], Tensor]) -> Any:
    if isinstance(value, list):
        return [_unpack(item, source, place) for item in value]
    if not isinstance(value, dict):
        return value
    kind = value.get("")
    if kind is None:
        return {key: _unpack(item, source, place) for key, item in value.items()}
    if kind == "dict":
        return {key: _unpack(item, source, place) for key, item in value["items"]}
    if kind == "tuple":
        return tuple(_unpack(item, source, place) for item in value["items"])
    array = np.load(source / f"{value['index']:06d}.npy", allow_pickle=False)
    dtype = dtypes.of(value["dtype"]).np
    if array.dtype != dtype:
        array = array.view(dtype)
    return place(array) if kind == "tensor" else array
