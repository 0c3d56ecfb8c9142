"""Snapshots: copies of a state in the memory of its hosts, which outlive the processes.

    folder/step_000000300.2/00000/     the parts that process 0 wrote in the job's epoch 2: a checkpoint of its own
    folder/step_000000300.2/00001/     those of process 1, on the same host

Each process writes its piece alone, so nothing is exchanged while the run goes on. Of the devices of a host that hold
the same part, the process of the first one writes it: every host has a copy of a replicated state. A piece is written
to a name with ``.partial`` and renamed. On restoring, the processes agree on the freshest generation of which each has
its piece, or its host the whole state. It serves if each host has the parts that its devices need.

    host 0: 0 1      host 1: 2 3      pieces of generation step 300, parameters replicated, moments split over 4
    host 0: 0 1      host 1: 2 3      all start again: each host has what its devices need
    host 0: 0 1      host 1 is new    moments 2 and 3 are lost: the checkpoint on the disk is taken
"""

from __future__ import annotations

import contextlib
import errno
import json
import math
import re
import shutil
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sbpjax._core.compiler import conversions
from sbpjax._core.runtime import processes
from sbpjax._core.runtime.ambient_mesh import jit_without_mesh
from sbpjax._core.serialization import signing
from sbpjax._core.tensor.handle.tensor import Tensor
from sbpjax._core.tensor.storage.payload import payload, refresh_tensor
from sbpjax.errors import CheckpointError
from sbpjax.sbp import Layout

from . import blocks, manifest, tree
from .loading import load_contents
from .reader import Contents
from .restore_plan import entries_of
from .saving import facts_of, stored_layout

GENERATION = re.compile(r"step_(\d{9})\.(\d+)$")
KEPT = 2  # complete generations; one more is being written
_copy_all = jit_without_mesh(lambda arrays: [jnp.copy(x) for x in arrays])


class Snapshots:
    """Snapshots of one run on this host.

    Args:
        folder: in memory, of this host; all its processes have the same.
        epoch: of the job, so that the pieces of a step that is done again are not mixed with those of before.
        host_ranks: the ranks of the processes on this host.

    Attributes:
        bytes: the size of this process's latest piece.
        failure: why the latest piece could not be written, e.g. that the memory is full; None if it was.
    """

    def __init__(self, folder: Path, epoch: int, host_ranks: range) -> None:
        signing.private_folder(folder)
        self.folder, self.epoch, self.host_ranks = folder, epoch, host_ranks
        self.bytes = 0
        self.failure: str | None = None
        self._written: list[str] = []
        self._thread: threading.Thread | None = None

    def remove_other_runs(self, name: re.Pattern) -> None:
        """Remove the folders beside this one that have names of runs."""
        for other in self.folder.parent.iterdir():
            if other != self.folder and name.fullmatch(other.name):
                shutil.rmtree(other, ignore_errors=True)

    def save(self, step: int, state: Any) -> None:
        """Copy a state; all processes call it. The devices copy in their own time, a thread copies to the host."""
        self.wait()
        structure, found = tree.pack(state)
        facts = {"version": manifest.VERSION, "tensors": {n: facts_of(x) for n, x in found.items()}, "state": structure}
        parts = [part for number, value in enumerate(found.values()) for part in self._parts(number, value)]
        by_device: dict[Any, list[int]] = {}
        for i, (_, _, value) in enumerate(parts):
            if isinstance(value, jax.Array):
                by_device.setdefault(value.sharding, []).append(i)
        for places in by_device.values():  # the next step may overwrite the arrays, but not these copies
            for i, copy in zip(places, _copy_all([parts[i][2] for i in places]), strict=True):
                parts[i] = (*parts[i][:2], copy)
        name = f"step_{step:09d}.{self.epoch}"
        self._thread = threading.Thread(target=self._write, args=(name, json.dumps(facts), parts), name=name)
        self._thread.start()

    def wait(self) -> None:
        """Wait for the snapshot that is being written."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _parts(self, number: int, value: Any) -> list[tuple[int, tuple[int, ...], Any]]:
        """Return the parts of a tensor that this process writes."""
        world = processes.current()
        if isinstance(value, Tensor):
            refresh_tensor(value)
        layout = value.layout if isinstance(value, Tensor) else None
        if layout is None:
            if world.rank != self.host_ranks[0]:
                return []
            array = payload(value) if isinstance(value, Tensor) else np.array(value)
            return [(number, (0,) * array.ndim, array)]
        even = stored_layout(layout)
        array, _ = conversions.convert(payload(value), layout, even.placement, even.sbp)
        first: dict[tuple, Any] = {}  # of each part, its first device on this host
        for device, index in array.sharding.devices_indices_map(array.shape).items():
            if world.owner(device) in self.host_ranks:
                first.setdefault(_start(index), device)
        mine = [s for s in array.addressable_shards if first[_start(s.index)] == s.device]
        return [(number, _start(s.index), s.data) for s in mine if s.data.size]

    def _write(self, name: str, facts: str, parts: list) -> None:
        rank = processes.current().rank
        piece = self.folder / name / f"{rank:05d}"
        partial = piece.with_suffix(".partial")
        try:
            values = [(number, start, np.asarray(value)) for number, start, value in parts]
            # All processes have taken this step, so they have begun this snapshot or are about to, and have completed
            # the one before the last.
            for old in self._written[:-KEPT]:
                shutil.rmtree(self.folder / old / f"{rank:05d}", ignore_errors=True)
                with contextlib.suppress(OSError):  # others have pieces there
                    (self.folder / old).rmdir()
            if len(self._written) == KEPT and rank == self.host_ranks[0]:
                for other in [n for n in self._names() if int(n.rpartition(".")[2]) < self.epoch]:
                    shutil.rmtree(self.folder / other, ignore_errors=True)
            for leftover in (partial, piece):
                shutil.rmtree(leftover, ignore_errors=True)
            size, free = sum(value.nbytes for _, _, value in values), shutil.disk_usage(self.folder).free
            if size > free:  # without filling the memory first, which other programs need
                raise OSError(errno.ENOSPC, f"{size / 2**20:,.0f} MB into {free / 2**20:,.0f} MB that are free")
            (partial / blocks.ARRAYS).mkdir(parents=True, mode=0o700)
            manifest.write_text(partial / manifest.STATE, facts)
            blocks.write(partial, rank, values)
            manifest.write(partial)
            partial.rename(piece)
            self.bytes = sum(file.stat().st_size for file in piece.rglob("*") if file.is_file())
            self._written = [*self._written[-KEPT:], name]
            self.failure = None
        except Exception as error:  # training goes on, and may be restored from an earlier one or from the disk
            self.failure = f"{type(error).__name__}: {error}"
            shutil.rmtree(partial, ignore_errors=True)
            with contextlib.suppress(OSError):
                piece.parent.rmdir()

    # -- restoring ----

    def latest(self, before: int | None = None) -> tuple[int, Contents] | None:
        """Return the step and the reader of the freshest generation of which every host has its pieces, or None.

        All processes call it.

        Args:
            before: only of steps below it.
        """
        self.wait()
        mine = {name: contents for name in self._names() if (contents := self._open(name)) is not None}
        gathered = processes.current().exchange("looking for snapshots", sorted(mine))
        common = set.intersection(*map(set, gathered.values()))
        steps = [(int(m[1]), int(m[2]), name) for name in common if (m := GENERATION.match(name))]
        steps = [found for found in steps if before is None or found[0] < before]
        if not steps:
            return None
        step, _, name = max(steps)
        return step, mine[name]

    def _names(self) -> list[str]:
        return [path.name for path in self.folder.iterdir() if GENERATION.match(path.name)]

    def _open(self, name: str) -> _Pieces | None:
        """Return the reader of this host's pieces of a generation; None if one is damaged, or missing and needed."""
        pieces = sorted(path for path in (self.folder / name).iterdir() if path.name.isdecimal())
        try:
            found = _Pieces(pieces) if pieces else None
        except CheckpointError:
            return None
        is_mine = f"{processes.current().rank:05d}" in [piece.name for piece in pieces]
        return found if found is not None and (found.is_whole or is_mine) else None


def restore(contents: Contents, into: dict[str, Any]) -> None:
    """Load the entries of a snapshot that a state has; all processes call it.

    Raises:
        CheckpointError: a host lacks parts of the state in its layout; all processes raise it, nothing is changed.
    """
    load_contents(contents, contents.state, into, strict=into.keys() == (entries_of(contents.state) or {}).keys())


class _Pieces(Contents):
    """Reader of a host's pieces of a generation.

    Attributes:
        is_whole: whether they have the whole state.

    Raises:
        CheckpointError: one is damaged.
    """

    def __init__(self, pieces: list[Path]) -> None:
        self.directory = pieces[0].parent
        self._blocks = blocks.Files(self.directory, folders={int(piece.name): piece for piece in pieces})
        with self.reading("its pieces"):
            for piece in pieces:
                version, files = manifest.read(piece)
                self._check_version(version)
                faults = [fault for name, facts in files.items() if (fault := manifest.find_fault(piece, name, *facts))]
                if faults:
                    raise manifest.damaged_error(piece, faults[0])
                rank = int(piece.name)
                self._blocks.add(rank, json.loads((piece / blocks.names(rank)[1]).read_text(encoding="utf-8")))
            facts = json.loads((pieces[0] / manifest.STATE).read_text(encoding="utf-8"))
            self.tensors, self.state, self.is_whole = facts["tensors"], facts["state"], True
            self._check_facts()
            for process, block in self._blocks.all_blocks():
                if not self._blocks.is_intact(process, block):
                    raise manifest.damaged_error(self._blocks.folders[process], f"the checksum of {block} is another")

    def check_parts(self, targets: dict[str, Layout | None]) -> None:
        """Raise a CheckpointError if this host lacks parts that its devices need."""
        for number, (name, facts) in enumerate(self.tensors.items()):
            if name not in targets:
                continue
            shape, layout = tuple(facts["shape"]), targets[name]
            wanted = [tuple(slice(0, n) for n in shape)]
            if layout is not None:
                wanted = list(stored_layout(layout).sharding.addressable_devices_indices_map(shape).values())
            if not all(self._blocks.has(number, shape, index) for index in wanted):
                rule = "without the disk, each host has the parts of the state that its devices need"
                fix = "the checkpoint on the disk, as for another mesh or a new host"
                raise CheckpointError(f"restoring {self.directory}", f"parts of {name} are on other hosts", rule, fix)

    def _check_covered(self, number: int, shape: tuple[int, ...], count: int) -> None:
        self.is_whole = self.is_whole and count == math.prod(shape)


def _start(index: Iterable[slice]) -> tuple[int, ...]:
    return tuple(s.start or 0 for s in index)
