"""Reading: into any placement and sbp, on any number of processes and devices, all or some of it.

    state = sbpjax.checkpoint.load(path, placement=p, sbp=sbpjax.sbp.broadcast)
    sbpjax.checkpoint.load(path, into={"model": model.state_dict()})       # in place, each tensor in its own layout

Every device reads the part that it will hold. Before anything is changed, sizes and checksums of all files are
compared: each process checks its share of the files, and all of them raise if one finds a fault.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

import jax
import numpy as np

from sbpjax import world as _world
from sbpjax.errors import CheckpointError, message
from sbpjax.sbp import Layout, algebra, eager
from sbpjax.sbp.placement import placement as Placement
from sbpjax.tensor import dtype as dtypes
from sbpjax.tensor.dispatch import wrap_any
from sbpjax.tensor.from_data import tensor
from sbpjax.tensor.tensor import Tensor

from . import document
from .saving import ARRAYS, CHECKSUMS, STATE, VERSION, checksum, on_disk
from .together import together


def located(path: str | os.PathLike) -> Path:
    """Return where a checkpoint is: at its path, or beside it if a crash came between the two renames of a save.

    Raises:
        CheckpointError: there is none.
    """
    path = Path(path).absolute()
    for candidate in (path, path.with_name(path.name + ".old")):
        if (candidate / CHECKSUMS).exists():
            return candidate
    seen = "no such directory" if not path.exists() else f"no {CHECKSUMS} in it: it was not written to the end"
    raise CheckpointError(
        message(
            f"the checkpoint {str(path)!r}",
            seen,
            "a checkpoint is a directory that sbpjax.checkpoint.save wrote",
            "check the path; sbpjax.checkpoint.Manager(directory).latest() finds the last complete one",
        )
    )


def read_facts(directory: Path) -> dict:
    """Return what `state.json` says.

    Raises:
        CheckpointError: it cannot be read, or is of a later version.
    """
    try:
        facts = json.loads((directory / STATE).read_text(encoding="utf-8"))
        version = facts["version"]
    except (OSError, ValueError, KeyError) as error:
        raise _damaged(directory, f"{STATE}: {error}") from None
    if version > VERSION:
        rule = f"this version of sbpjax reads checkpoints up to version {VERSION}"
        raise CheckpointError(message(f"loading {directory}", f"version {version}", rule, "use a newer sbpjax"))
    return facts


def _damaged(directory: Path, seen: str) -> CheckpointError:
    return CheckpointError(
        message(
            f"loading the checkpoint {str(directory)!r}",
            seen,
            "every file is as it was written; nothing was loaded",
            "take an earlier checkpoint: sbpjax.checkpoint.Manager(directory).steps()",
        )
    )


def verify(path: str | os.PathLike) -> None:
    """Compare the size and checksum of every file; all processes call it, each reads its share.

    Raises:
        CheckpointError: a file is missing, truncated or changed; all processes raise it.
    """
    directory = located(path)
    world = _world.current()
    faults = []
    try:
        sums = json.loads((directory / CHECKSUMS).read_text(encoding="utf-8"))
    except ValueError as error:
        sums, faults = {}, [f"{CHECKSUMS}: {error}"]
    for i, (name, (size, crc)) in enumerate(sorted(sums.items())):
        if i % world.size != world.rank:
            continue
        file = directory / name
        if not file.exists():
            faults.append(f"{name} is missing")
        elif file.stat().st_size != size:
            faults.append(f"{name} has {file.stat().st_size} bytes, {size} were written")
        elif checksum(file) != crc:
            faults.append(f"{name} has changed: its checksum is another")
    told = world.exchange(f"verifying {directory}", faults)
    faults = [f for theirs in told.values() for f in theirs]
    if faults:
        raise _damaged(directory, "; ".join(faults[:4]) + (f" and {len(faults) - 4} more" if len(faults) > 4 else ""))


def load(
    path: str | os.PathLike,
    *,
    into: Any = None,
    placement: Placement | None = None,
    sbp: Any = None,
    pattern: str | list[str] | None = None,
    check: bool = True,
) -> Any:
    """Return what `save` wrote, or put it into tensors; all processes call it.

    Args:
        path: the directory.
        into: a state of the same names: its tensors are written in place, each in the layout that it has. Tensors of
            the checkpoint that it has not are left out.
        placement: without ``into``: where tensors are made global; without it they are local, and whole on every
            process.
        sbp: with ``placement``, their nd-sbp; broadcast by default. Dims that a tensor has not are not split.
        pattern: load only the tensors whose names match, e.g. ``"model/*"`` or a list of patterns.
        check: compare checksums first.

    Returns:
        The state; with ``into``, that state, its plain values those of the checkpoint.

    Raises:
        CheckpointError: there is no checkpoint, a file is damaged (nothing is loaded then), a tensor of ``into`` is
            not in it or has another shape.
    """

    def found() -> tuple[Path, dict]:
        directory = located(path)
        return directory, read_facts(directory)

    def planned() -> Plan:
        wanted = document.chosen(list(facts["tensors"]), pattern)
        if into is not None:
            return _planned_into(directory, facts, wanted, into, pattern)
        return Plan(directory, facts, {n: _target(facts["tensors"][n], placement, sbp) for n in wanted})

    (directory, facts), told = together("loading a checkpoint", found, lambda both: [str(both[0])])
    _alike(told)
    if check:
        verify(path)
    plan, told = together(
        "loading a checkpoint", planned, lambda made: [f"{n} as {t}" for n, t in made.targets.items()]
    )
    _alike(told)
    arrays = _read(plan)
    if into is not None:
        return _written_into(plan, into, arrays)

    def make(name: str):
        if name not in arrays:
            return document.MISSING
        return _made(arrays[name], plan.targets[name], plan.facts["tensors"][name])

    return document.unpack(plan.facts["state"], make)


def _alike(told: dict[int, list[str]]) -> None:
    """Raise if a rank loads something else than rank 0."""
    for rank, theirs in told.items():
        if theirs == told[0]:
            continue
        both = zip_longest(told[0], theirs, fillvalue="nothing more")
        first, other = next((a, b) for a, b in both if a != b)
        seen = f"rank {rank} loads {other}, rank 0 {first}"
        rule = "all ranks load the same tensors of one checkpoint, into the same layouts"
        raise CheckpointError(message("loading a checkpoint", seen, rule, "give all ranks one path and one state"))


@dataclass(frozen=True)
class Plan:
    """What a load reads.

    Attributes:
        directory: where the checkpoint is.
        facts: what its `state.json` says.
        targets: the layout in which each tensor is wanted, by name; None for a local one.
        found: the tensors and arrays that are written in place.
    """

    directory: Path
    facts: dict
    targets: dict[str, Layout | None]
    found: dict[str, Any] = field(default_factory=dict)


def _planned_into(directory: Path, facts: dict, wanted: list[str], into: Any, pattern) -> Plan:
    _, found = document.pack(into)
    if pattern is not None:
        found = {n: v for n, v in found.items() if n in wanted}
    known = facts["tensors"]
    missing = [n for n in found if n not in known]
    if missing:
        fix = "pattern= loads a part; sbpjax.checkpoint.inspect(path) lists the names"
        seen = f"{len(missing)} tensors are not in it: {missing[:4]}"
        rule = "every tensor of `into` is in the checkpoint"
        raise CheckpointError(message(f"loading {str(directory)!r}", seen, rule, fix))
    for name, value in found.items():
        shape = tuple(known[name]["shape"])
        if tuple(value.shape) != shape:
            seen = f"{name}: {list(value.shape)} here, {list(shape)} in the checkpoint"
            rule = "a tensor is loaded into one of its shape"
            raise CheckpointError(message(f"loading {str(directory)!r}", seen, rule, "build the model as it was saved"))
    layouts = {n: v._fresh()._layout if isinstance(v, Tensor) else None for n, v in found.items()}
    targets = {
        n: None if x is None else Layout(x.placement, x.sbp, x.shape, dtypes.of(known[n]["dtype"]).np)
        for n, x in layouts.items()
    }
    return Plan(directory, facts, targets, found)


def _written_into(plan: Plan, into: Any, arrays: dict[str, Any]) -> Any:
    for name, value in plan.found.items():
        made = _made(arrays[name], plan.targets[name], plan.facts["tensors"][name])
        if isinstance(value, Tensor):
            from sbpjax.autograd import no_grad

            with no_grad():
                value.copy_(made.to(value.dtype) if made.dtype != value.dtype else made)
        else:
            value[...] = made
    return _merged(into, document.unpack(plan.facts["state"], lambda name: plan.found.get(name, document.MISSING)))


def _merged(into: Any, loaded: Any) -> Any:
    """Return ``into`` with the plain values of the checkpoint where it has them."""
    if isinstance(into, dict) and isinstance(loaded, dict):
        return {k: _merged(v, loaded[k]) if k in loaded else v for k, v in into.items()}
    return into if isinstance(into, (Tensor, np.ndarray)) else loaded


def _target(facts: dict, placement: Placement | None, sbp: Any) -> Layout | None:
    if placement is None:
        return None
    shape = tuple(facts["shape"])
    return Layout(placement, fitting(sbp, placement, len(shape)), shape, dtypes.of(facts["dtype"]).np)


def fitting(sbp: Any, placement: Placement, ndim: int) -> tuple:
    """Return the nd-sbp of a tensor of ``ndim`` dims: broadcast where none is given or the split dim is missing."""
    entries = sbp if isinstance(sbp, (list, tuple)) else [sbp] * len(placement.hierarchy)
    codes = [algebra.B if e is None else algebra.parse([e], (1,))[0] for e in entries]
    return algebra.to_sbp(tuple(algebra.B if c >= ndim else c for c in codes))


def _read(plan: Plan) -> dict[str, Any]:
    """Return the physical arrays of the wanted layouts, whole NumPy arrays where there is none."""
    import orbax.checkpoint as ocp  # takes a second to import

    if not plan.targets:
        return {}
    index = {n: i for i, n in enumerate(plan.facts["tensors"])}
    item, options, even = {}, {}, {}
    for name, target in plan.targets.items():
        key, known = str(index[name]), plan.facts["tensors"][name]
        dtype = dtypes.of(known["dtype"]).np
        if target is None:
            item[key] = np.zeros((), dtype)
            options[key] = ocp.RestoreArgs(restore_type=np.ndarray)
            continue
        even[name] = on_disk(target)
        sharding = even[name].sharding
        item[key] = jax.ShapeDtypeStruct(tuple(known["shape"]), dtype, sharding=sharding)
        options[key] = ocp.ArrayRestoreArgs(sharding=sharding, global_shape=tuple(known["shape"]), dtype=dtype)
    args = ocp.args.PyTreeRestore(item=item, restore_args=options, partial_restore=True)
    reader = ocp.Checkpointer(ocp.PyTreeCheckpointHandler(use_ocdbt=True, use_zarr3=True))
    try:
        read = reader.restore(plan.directory / ARRAYS, args=args)
    except Exception as error:
        raise _damaged(plan.directory, f"{type(error).__name__}: {str(error)[:300]}") from error
    finally:
        reader.close()
    result = {}
    for name, target in plan.targets.items():
        array = read[str(index[name])]
        if target is not None:
            array, _ = eager.convert(array, even[name], target.placement, target.sbp)
        result[name] = array
    return result


def _made(array, target: Layout | None, facts: dict):
    if target is not None:
        return wrap_any(array, target)
    return array if "index" in facts else tensor(np.asarray(array))
