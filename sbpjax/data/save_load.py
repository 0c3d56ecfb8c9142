"""`save` and `load` under OneFlow's names, over the one checkpoint format of `sbpjax.checkpoint`.

    sbpjax.save({"model": model.state_dict(), "step": 300}, "run7/last")
    model.load_state_dict(sbpjax.load("run7/last", global_src_rank=0)["model"])

A tensor is stored by its logical value, so a run saved on eight devices in one layout loads on one device in
another. It comes back as a local tensor, or, for the state of global modules, as a global one. Reading executes
nothing. A directory appears under its name only when it is complete, so an interrupted `save` leaves the previous
checkpoint as it was.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from sbpjax._core.runtime import processes
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.creation import from_data
from sbpjax._core.tensor.handle import device as devices
from sbpjax._core.tracing.checkpoint import checkpoint as checkpoint  # PyTorch's module of this name has it
from sbpjax._core.tracing.segments import checkpoint_sequential as checkpoint_sequential
from sbpjax.errors import OpTypeError
from sbpjax.nn.parameter import Parameter
from sbpjax.sbp import broadcast, placement

from .checkpoint import loading, oneflow_file, safetensors, saving, torch_file, tree


def save(obj: Any, path: str | os.PathLike, global_dst_rank: int | None = None) -> None:
    """Write an object as the directory `path`; an older one there is replaced at the end.

    In a job of several processes, a state without global tensors is written by each process that calls this, and none
    waits for another: ``if rank == 0: save(model.state_dict(), path)``. A state whose global tensors are all on devices
    of one process is written by that one. Any other state is written by all processes together, which all call this.
    `sbpjax.checkpoint.save` is always called by all processes.

    Args:
        obj: tensors, NumPy arrays, containers and plain values (`sbpjax.checkpoint.save` lists them); modules and
            optimizers are saved by their state.
        path: the directory.
        global_dst_rank: the rank that writes global tensors, as OneFlow has it; here every process writes its own
            shards, so the number is only checked.

    Raises:
        CheckpointError: a value in it cannot be stored, or it cannot be written.
        PlacementError: there is no such rank.
    """
    if global_dst_rank is not None:
        placement("cpu", [global_dst_rank])
    packed = tree.pack(obj)
    owners = _owners(packed[1].values())
    if len(owners) > 1:
        saving.begin(obj, path, asynchronous=False, packed=packed)
    elif owners <= {processes.current().rank}:
        with processes.single_process():
            saving.begin(obj, path, asynchronous=False, packed=packed)


def load(
    path: str | os.PathLike,
    global_src_rank: Any = None,
    map_location: Any = None,
    *,
    support_pytorch_format: bool = True,
    weights_only: bool | None = None,
) -> Any:
    """Return the saved object; tensors come back as local ones unless a placement or a rank is given.

    A file named ``*.safetensors`` is read as one, any other file as one of ``torch.save`` with a plain state in it
    (``.pth``, ``.pt``, ``.bin``), a directory with OneFlow's ``pickled_data`` as one of ``oneflow.save``: no code in
    them runs, unless ``weights_only=False`` allows it.

    In a job of several processes, each process that calls this without a placement reads by itself; with one, all
    processes call it.

    Args:
        path: the directory, or the file.
        global_src_rank: a rank: then every tensor is global on that rank alone, of the CPU or of the type of the device
            in ``map_location``. `load_state_dict` and `to_global` bring it from there to any placement and sbp, so no
            other device ever holds the whole value. Every process reads files itself, so beside a placement it changes
            nothing.
        map_location: a device for local tensors, or a placement: then every tensor is global there, in broadcast. It
            may be the second argument, as in PyTorch.
        support_pytorch_format: read PyTorch's files.
        weights_only: False lets a file of PyTorch's name anything, which runs any code its author put there: only for
            files that you made. Directories hold no code.

    Raises:
        CheckpointError: there is no checkpoint at `path`, it is damaged, or it holds names that `weights_only` rejects.
        OpTypeError: `map_location` is neither device nor placement.
        PlacementError: there is no such rank.
    """
    if global_src_rank is not None and map_location is None and not isinstance(global_src_rank, int):
        global_src_rank, map_location = None, global_src_rank
    place, device = _parse_map_location(map_location, global_src_rank)
    source = Path(path)
    if source.is_file() and source.suffix == ".safetensors":
        place_array = _make_placer(map_location, global_src_rank)
        return {name: place_array(np.array(array)) for name, array in safetensors.open_safetensors(source).items()}
    if source.is_file() and support_pytorch_format:
        place_array = _make_placer(map_location, global_src_rank)
        return torch_file.read_torch(source, place_array, weights_only=weights_only is not False)
    if oneflow_file.is_oneflow(source):
        return oneflow_file.read_oneflow(source, _make_placer(map_location, global_src_rank), Parameter)
    with processes.single_process() if place is None else contextlib.nullcontext():
        return loading.load(source, placement=place, device=device)


def _owners(values: Iterable[Any]) -> set[int]:
    """Return the processes that own devices of the global tensors of a state."""
    placements = {v.placement for v in values if isinstance(v, Tensor) and v.is_global}
    return {processes.current().owner(device) for place in placements for device in place.devices.flat}


def _parse_map_location(map_location: Any, global_src_rank: int | None) -> tuple[placement | None, Any]:
    """Return the placement of global tensors, or None and the device of local ones."""
    if not isinstance(map_location, (str, devices.device, placement, type(None))):
        rule = "map_location is a device or a placement, and global_src_rank a rank"
        seen, fix = (
            f"map_location={map_location!r}",
            "load(path), load(path, placement) or load(path, global_src_rank=0)",
        )
        raise OpTypeError("loading a checkpoint", seen, rule, fix)
    if isinstance(map_location, placement):
        return map_location, None
    if global_src_rank is None:
        return None, map_location
    kind = "cpu" if map_location is None else devices.device(map_location).type
    return placement(kind, [global_src_rank]), None


def _make_placer(map_location: Any, global_src_rank: int | None) -> Callable[[np.ndarray], Tensor]:
    """Return how `load` makes a tensor of an array."""
    place, device = _parse_map_location(map_location, global_src_rank)
    if place is None:
        return lambda array: from_data.tensor(array, device=device)
    everywhere = [broadcast] * len(place.hierarchy)
    return lambda array: from_data.tensor(array, placement=place, sbp=everywhere)
