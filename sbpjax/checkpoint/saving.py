"""Writing: every process its own shards, in the background if wanted, and all of it or nothing.

    saving = sbpjax.checkpoint.save({"model": model.state_dict(), "step": 300}, path, asynchronous=True)
    ...                                   # training goes on: the arrays were copied to the host's memory
    saving.wait()

    path/state.json        structure; name, shape, dtype, sbp and placement of every tensor
    path/checksums.json    size and CRC-32 of every other file
    path/arrays/           Orbax: OCDBT with Zarr, each process's shards in files of its own

Everything is written to ``path.partial``; when all processes are done it is renamed. A crash at any point leaves what
was at ``path`` before.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
import zlib
from pathlib import Path
from typing import Any

import jax
import numpy as np

from sbpjax import world as _world
from sbpjax.errors import CheckpointError, message
from sbpjax.sbp import Layout, algebra, broadcast, eager, split
from sbpjax.sbp.placement import one_per_process
from sbpjax.sbp.transfer import travelling
from sbpjax.tensor.tensor import Tensor

from . import document
from .together import together

STATE, CHECKSUMS, ARRAYS = "state.json", "checksums.json", "arrays"
_BLOCK_BYTES = 1 << 22


class Saving:
    """A checkpoint that is being written.

    Args:
        path: where it will be.
        thread: what writes it, None if it is done.
        errors: what went wrong there.
    """

    def __init__(self, path: Path, thread: threading.Thread | None, errors: list[BaseException]) -> None:
        self.path = path
        self._thread = thread
        self._errors = errors

    def done(self) -> bool:
        """Return whether this process is done with writing."""
        return self._thread is None or not self._thread.is_alive()

    def wait(self) -> Path:
        """Wait until the checkpoint is complete on all processes, and return its path; all processes call it.

        Raises:
            CheckpointError: it could not be written.
        """
        if self._thread is not None:
            self._thread.join()
        error = self._errors[0] if self._errors else None
        world = _world.current()
        told = world.exchange(f"saving {self.path}", None if error is None else f"{type(error).__name__}: {error}")
        failed = {r: e for r, e in told.items() if e is not None}
        if failed:
            raise CheckpointError(
                message(
                    f"saving the checkpoint {str(self.path)!r}",
                    "; ".join(f"rank {r}: {e}" for r, e in failed.items()),
                    "all processes can write there, and there is room",
                    "check the directory; the checkpoint that was there before is as it was",
                )
            ) from error
        return self.path


def save(state: Any, path: str | os.PathLike, *, asynchronous: bool = False) -> Saving:
    """Write a checkpoint; all processes call it with the same state.

    Args:
        state: dicts (string or integer keys), lists and tuples of tensors, NumPy arrays and plain values. Of local
            tensors and plain values, those of rank 0 are written.
        path: the directory, which all processes reach; an older checkpoint there is replaced at the end.
        asynchronous: return as soon as the values are copied; `Saving.wait` waits for the rest.

    Returns:
        The `Saving`; complete unless ``asynchronous``.

    Raises:
        CheckpointError: something in ``state`` cannot be stored, ranks save other states, or it cannot be written.
    """
    import orbax.checkpoint as ocp  # takes a second to import

    target = Path(path).absolute()
    partial = target.with_name(target.name + ".partial")
    world = _world.current()

    def begin() -> tuple[Any, dict[str, Any]]:
        structure, found = document.pack(state)
        if world.rank == 0:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir()
            facts = {"version": VERSION, "tensors": {n: _facts(x) for n, x in found.items()}, "state": structure}
            (partial / STATE).write_text(json.dumps(facts), encoding="utf-8")
        return structure, found

    (_, found), told = together(f"saving {target}", begin, lambda result: _shared(result[1]))
    for rank, theirs in told.items():
        if theirs != told[0]:
            raise _other_state(target, rank, told[0], theirs)
    arrays = {str(i): _array(x) for i, x in enumerate(found.values())}
    checkpointer = ocp.AsyncCheckpointer(ocp.PyTreeCheckpointHandler(use_ocdbt=True, use_zarr3=True))
    if arrays:
        checkpointer.save(partial / ARRAYS, args=ocp.args.PyTreeSave(arrays), force=True)
    errors: list[BaseException] = []

    def finish() -> None:
        try:
            checkpointer.wait_until_finished()
            checkpointer.close()
            if world.rank == 0:
                _commit(partial, target)
        except BaseException as error:  # told by `wait`
            errors.append(error)

    if asynchronous:
        thread = threading.Thread(target=finish, name=f"saving {target.name}")
        thread.start()
        return Saving(target, thread, errors)
    finish()
    saving = Saving(target, None, errors)
    saving.wait()
    return saving


VERSION = document.VERSION


def _array(value: Any) -> jax.Array | np.ndarray:
    """Return what Orbax is to write: an ordinary sharded array of the logical shape."""
    if not isinstance(value, Tensor):
        return value
    value._fresh()
    layout = value._layout
    if layout is None:
        return np.asarray(value._array)
    even = on_disk(layout)
    array, _ = eager.convert(value._array, layout, even.placement, even.sbp)
    return array


def on_disk(layout: Layout) -> Layout:
    """Return the layout in which a tensor is written and read: even, no partial sums, on all processes."""
    if not layout.placement.covers_processes:  # a stage of a pipeline: Orbax wants something of every process
        everyone = one_per_process(layout.placement.type)
        layout = Layout(everyone, (split(0) if layout.shape else broadcast,), layout.shape, layout.dtype)
    return travelling(layout)


def _shared(found: dict[str, Any]) -> dict[str, Any]:
    """Return what must be equal on all ranks: the names, and shape, dtype and layout of global tensors."""
    return {n: _facts(x) if isinstance(x, Tensor) and x.is_global else None for n, x in found.items()}


def _other_state(target: Path, rank: int, first: dict, theirs: dict) -> CheckpointError:
    """Return the error for a rank that saves another state than rank 0."""
    differing = sorted(set(first) ^ set(theirs))[:4]
    if differing:
        seen = f"rank {rank} has other names than rank 0: {differing}"
    else:
        name = next((n for n in first if first[n] != theirs[n]), None)
        seen = (
            f"{name}: {first[name]} on rank 0, {theirs[name]} on rank {rank}" if name else "the names in another order"
        )
    return CheckpointError(message(f"saving {target}", seen, "all ranks save one state", "save the same names"))


def _facts(value: Any) -> dict:
    if not isinstance(value, Tensor):
        return {"shape": list(value.shape), "dtype": str(value.dtype), "index": None}
    facts: dict = {"shape": list(value.shape), "dtype": value.dtype.name}
    if value._layout is not None:
        facts["sbp"] = algebra.nd_name(value._layout.codes)
        facts["placement"] = {"type": value.placement.type, "ranks": value.placement.ranks.tolist()}
    return facts


def checksum(path: Path) -> int:
    """Return the CRC-32 of a file."""
    total = 0
    with open(path, "rb") as file:
        while block := file.read(_BLOCK_BYTES):
            total = zlib.crc32(block, total)
    return total


def files_of(directory: Path) -> list[Path]:
    """Return the files below a checkpoint that checksums are kept of."""
    return sorted(p for p in directory.rglob("*") if p.is_file() and p != directory / CHECKSUMS)


def _commit(partial: Path, target: Path) -> None:
    """Write the checksums and move the checkpoint to its place."""
    sums = {str(p.relative_to(partial)): [p.stat().st_size, checksum(p)] for p in files_of(partial)}
    with open(partial / CHECKSUMS, "w", encoding="utf-8") as file:
        json.dump(sums, file)
        file.flush()
        os.fsync(file.fileno())
    old = target.with_name(target.name + ".old")
    if target.exists():  # otherwise a crash came between these two renames, and the checkpoint is the old one
        shutil.rmtree(old, ignore_errors=True)
        target.rename(old)
    partial.rename(target)
    shutil.rmtree(old, ignore_errors=True)
