"""Save checkpoints: each process writes its own shards, optionally in the background, atomically.

    saving = sbpjax.checkpoint.save({"model": model, "step": 300}, path, asynchronous=True)
    ...                                   # training continues: the values were copied to the host's memory
    saving.wait()

    path/state.json        structure; name, shape, dtype, sbp and placement of every tensor (`tree`)
    path/arrays/           the shards of each process in a file of its own, with checksums (`blocks`)
    path/checksums.json    size and checksum of every file, itself included (`manifest`)

Everything is written to ``path.partial`` (`partial`); when all processes are done it is renamed. A crash at any point
leaves the previous ``path``. A process writes in a thread that Python joins at exit, whatever ends the program, so a
save that was begun on all processes is finished; all of them wait for rank 0's last step.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from sbpjax._core.compiler import conversions
from sbpjax._core.compiler.between_placements import intermediate_layout
from sbpjax._core.runtime import processes
from sbpjax._core.runtime.processes import World
from sbpjax._core.runtime.progress import show_progress
from sbpjax._core.tensor.handle.tensor import Tensor
from sbpjax._core.tensor.storage.payload import payload, refresh_tensor
from sbpjax.errors import CheckpointError, LostRankError
from sbpjax.nn.parameter import Parameter
from sbpjax.sbp import Layout, algebra, broadcast, split
from sbpjax.sbp.placement import one_per_process

from . import blocks, codec, manifest, tree
from .collective_io import run_collectively
from .partial import Partial

Shards = list[tuple[int, tuple[int, ...], np.ndarray]]
_REPORT_S = 5.0  # extra time for rank 0 to report its timeout
_open: set[PendingSave] = set()  # begun, outcome not yet reported


class PendingSave:
    """A checkpoint that is being written.

    Attributes:
        path: its final path.
    """

    def __init__(self, path: Path, work: Callable[[], dict[int, str]]) -> None:
        self.path = path
        self._failed: dict[int, str] = {}
        self._work = work
        self._world = processes.current()
        self._thread = threading.Thread(target=self._run, name=f"saving {path.name}")  # Python waits for it at its end

    def _begin(self) -> None:
        _open.add(self)
        self._world.background.add(self._thread)
        if threading.main_thread().is_alive():
            self._thread.start()
        else:  # called by `atexit`: Python waits for threads no longer, and from 3.12 on starts none
            self._run()

    def _run(self) -> None:
        try:
            self._failed = self._work()
        except BaseException as error:  # reported by `wait`
            self._failed = {self._world.rank: f"{type(error).__name__}: {error}"}
        self._world.background.discard(self._thread)
        if not self._failed:
            _open.discard(self)

    def done(self) -> bool:
        """Return whether the checkpoint is complete, or could not be written."""
        return not self._thread.is_alive()

    def join(self) -> None:
        """Wait until nothing is being written; `wait` reports success or failure."""
        if self._thread.ident is not None:
            self._thread.join()

    def wait(self) -> Path:
        """Wait until the checkpoint is complete on all processes, and return its path.

        Raises:
            CheckpointError: the checkpoint could not be written; every process raises this once.
        """
        self.join()
        failure = self._failure()
        if failure is not None:
            raise failure
        return self.path

    def _failure(self) -> CheckpointError | None:
        """Return the failure, on the first call only."""
        if not self._failed or self not in _open:
            return None
        _open.discard(self)
        return CheckpointError(
            f"saving the checkpoint {str(self.path)!r}",
            "; ".join(f"rank {r}: {e}" for r, e in self._failed.items()),
            "all processes can write there, and there is room",
            "check the directory; the checkpoint that was there before is as it was",
        )


def _at_exit() -> None:
    """Report failed saves that were never waited for, and end the process with an error code."""
    failed = [(s, failure) for s in list(_open) if (failure := s._failure()) is not None]
    for saving, failure in failed:
        if saving._world.rank in (0, *saving._failed):
            print(f"sbpjax: {failure}", file=sys.stderr, flush=True)
    if failed:
        processes.current().exit_with_error(f"failed: {failed[0][1]}")


atexit.register(_at_exit)


def save(state: Any, path: str | os.PathLike, *, asynchronous: bool = False) -> PendingSave:
    """Write a checkpoint; all processes call it with the same state.

    Args:
        state: tensors, NumPy arrays, containers and plain values (`codec`); modules, optimizers and other objects with
            ``state_dict`` and ``load_state_dict`` are saved by their state. Of local tensors and plain values, those of
            rank 0 are written.
        path: the directory, which all processes reach; an older checkpoint there is replaced at the end.
        asynchronous: return as soon as the values are copied; `PendingSave.wait` waits for the rest, so does the end
            of the program.

    Returns:
        The `PendingSave`; complete unless ``asynchronous``.

    Raises:
        CheckpointError: a value in ``state`` cannot be stored, ranks save different states, or the disk cannot be
            written.
    """
    return begin(state, path, asynchronous)


def begin(
    state: Any,
    path: str | os.PathLike,
    asynchronous: bool,
    after: Callable[[], None] | None = None,
    packed: tuple[Any, dict[str, Any]] | None = None,
) -> PendingSave:
    """Write a checkpoint as `save` does, and then run ``after`` on rank 0, whether it could be written or not.

    ``packed`` is what `document.pack` returned for the state, where the caller has it.
    """
    target = Path(path).absolute()
    world, partial = processes.current(), Partial(target)
    for saving in [s for s in _open if s.path == target and s._world is world]:
        saving.join()

    def prepare() -> tuple[str, dict[str, Any], str]:
        structure, found = packed or tree.pack(state)
        facts = {"version": manifest.VERSION, "tensors": {n: facts_of(x) for n, x in found.items()}, "state": structure}
        text = json.dumps(facts)
        if world.rank == 0:
            partial.make()
        return text, found, uuid.uuid4().hex

    try:
        (text, found, _), gathered = run_collectively(
            f"saving {target}", prepare, lambda made: (_shared_facts(made[1]), made[2])
        )
        for rank, (theirs, _) in gathered.items():
            if theirs != gathered[0][0]:
                raise _other_state(target, rank, gathered[0][0], theirs)
    except BaseException:
        partial.remove()
        raise
    number = gathered[0][1]  # of this save, alike on all ranks
    shards: Shards | Exception
    try:
        shards = [s for i, x in enumerate(found.values()) for s in _shards(i, x, asynchronous)]
    except Exception as error:  # from here on the others count on this rank
        shards = error

    def work() -> dict[int, str]:
        if world.rank == 0:
            return _write_first(world, partial, text, shards, number, after)
        return _write_other(world, partial, shards, number)

    saving = PendingSave(target, work)
    saving._begin()
    world.wait_for_members(f"saving {target}")  # waiting for a save requires that all ranks have begun their threads
    if not asynchronous:
        with show_progress(f"saving {target}"):
            saving.wait()
    return saving


def _write_first(
    world: World, partial: Partial, text: str, shards: Shards | Exception, number: str, after
) -> dict[int, str]:
    """Write rank 0's shards, wait for the others, and rename the checkpoint; return the failures by rank."""
    failed: dict[int, str] = {}
    try:
        manifest.write_text(partial.path / manifest.STATE, text)
        _write(partial, 0, shards)
    except Exception as error:
        failed[0] = f"{type(error).__name__}: {error}"
    failed |= _wait_for_ranks(world, number)
    if not failed:
        try:
            manifest.write(partial.path)
            partial.commit()
        except Exception as error:
            failed[0] = f"{type(error).__name__}: {error}"
    if failed:
        partial.remove()
    try:
        if after is not None:
            after()
    finally:
        world.post(f"{number}/end", json.dumps(failed))
    return failed


def _write(partial: Partial, rank: int, shards: Shards | Exception) -> None:
    if isinstance(shards, Exception):
        raise shards
    blocks.write(partial.path, rank, shards)


def _wait_for_ranks(world: World, number: str) -> dict[int, str]:
    """Wait until the other ranks have written; return the failed ranks with their reasons."""
    failed: dict[int, str] = {}
    deadline = time.monotonic() + processes.timeout_s()
    for rank in range(1, world.size):
        try:
            error = world.read_post(f"{number}/{rank}", rank, deadline)
            world.drop_post(f"{number}/{rank}")
        except LostRankError as lost:
            error = str(lost).split("\n")[1].strip()
        if error:
            failed[rank] = error
    return failed


def _write_other(world: World, partial: Partial, shards: Shards | Exception, number: str) -> dict[int, str]:
    """Write another rank's shards, and wait for rank 0's outcome."""
    error = ""
    try:
        _write(partial, world.rank, shards)
    except Exception as raised:
        error = f"{type(raised).__name__}: {raised}"
    world.post(f"{number}/{world.rank}", error)
    gathered = world.read_post(f"{number}/end", 0, time.monotonic() + processes.timeout_s() + _REPORT_S)
    return {int(rank): text for rank, text in json.loads(gathered).items()}


def _shards(number: int, value: Any, copied: bool) -> Shards:
    """Return the parts of a tensor or array that this process writes, on the host."""
    world = processes.current()
    if isinstance(value, Tensor):
        refresh_tensor(value)
    layout = value.layout if isinstance(value, Tensor) else None
    if layout is None:
        if world.rank != 0:
            return []
        array = np.asarray(payload(value) if isinstance(value, Tensor) else value)
        return [(number, (0,) * array.ndim, np.array(array) if copied else array)]
    even = stored_layout(layout)
    array, _ = conversions.convert(payload(value), layout, even.placement, even.sbp)
    mine = [s for s in array.addressable_shards if s.replica_id == 0 and world.owner(s.device) == world.rank]
    for shard in mine:
        shard.data.copy_to_host_async()
    starts = [tuple(s.start or 0 for s in shard.index) for shard in mine]
    # On CPU NumPy's array is the device's own memory, which a later step may be given to write to.
    copied = copied and even.placement.type == "cpu"
    values = [np.array(s.data) if copied else np.asarray(s.data) for s in mine]
    return [(number, start, v) for start, v in zip(starts, values, strict=True) if v.size]


def stored_layout(layout: Layout) -> Layout:
    """Return the layout in which a tensor is written and read: even, no partial sums, on all processes."""
    # A stage of a pipeline: every process writes a part.
    if not layout.placement.covers_processes and processes.current().size > 1:
        everyone = one_per_process(layout.placement.type)
        layout = Layout(everyone, (split(0) if layout.shape else broadcast,), layout.shape, layout.dtype)
    return intermediate_layout(layout)


def _shared_facts(found: dict[str, Any]) -> dict[str, Any]:
    """Return the data that must be equal on all ranks: names, and shape, dtype and layout of global tensors."""
    return {n: facts_of(x) if isinstance(x, Tensor) and x.is_global else None for n, x in found.items()}


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
    return CheckpointError(f"saving {target}", seen, "all ranks save one state", "save the same names")


def facts_of(value: Any) -> dict:
    """Return a tensor's entry of `state.json`; ``index`` marks a NumPy array, ``parameter`` a Parameter."""
    if not isinstance(value, Tensor):
        return {"shape": list(value.shape), "dtype": codec.dtype_name(value.dtype), "index": None}
    facts: dict = {"shape": list(value.shape), "dtype": value.dtype.name}
    if isinstance(value, Parameter):
        facts["parameter"] = value.requires_grad
    if value.layout is not None:
        facts["sbp"] = algebra.nd_name(value.layout.codes)
        facts["placement"] = codec.placement_facts(value.placement)
    return facts
