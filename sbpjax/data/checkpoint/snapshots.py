"""Snapshots: copies of a state in the memory of its hosts, which outlive the processes.

    folder/step_000000300.2/00000/     the parts that process 0 wrote in the job's epoch 2: a checkpoint of its own
    folder/step_000000300.2/00001/     those of process 1, on the same host

Each process writes its piece alone. Of the devices of a host that hold the same part, the process of the first one
writes it: every host has a copy of a replicated state. A piece is written to a name with ``.partial`` and renamed. If a
host has only parts of the state, the next host gets a copy of its pieces. On restoring, the pieces that a host lacks
are sent back to it, and the processes agree on the freshest generation of which each has its piece, or its host the
whole state. It serves if each host has the parts that its devices need.

    host 0: 0 1 (2 3)    host 1: 2 3 (0 1)    generation step 300, moments split over 4, copies in parentheses
    host 0: 0 1 (2 3)    host 1: 2 3 (0 1)    all start again: each host has what its devices need
    host 0: 0 1 (2 3)    host 1 is new        host 0 sends it 2 and 3
    both are new                              the checkpoint on the disk is taken
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
from sbpjax.distributed.elastic.folder_transfer import FolderTransfer
from sbpjax.errors import CheckpointError
from sbpjax.sbp import Layout

from . import blocks, manifest, tree
from .loading import load_contents
from .reader import Contents
from .restore_plan import entries_of
from .saving import facts_of, stored_layout

GENERATION = re.compile(r"step_(\d{9})\.(\d+)$")
PIECE = re.compile(r"step_\d{9}\.\d+/\d{5}")
KEPT = 2  # complete generations; one more is being written
_copy_all = jit_without_mesh(lambda arrays: [jnp.copy(x) for x in arrays])


class Snapshots:
    """Snapshots of one run on this host.

    Args:
        folder: in memory, of this host; all its processes have the same.
        epoch: of the job. Pieces of a step that is done again are not mixed with those of before: the names have a
            later number, this one or that of the folder's latest generation plus 1.
        host_ranks: the ranks of the processes on this host.

    Attributes:
        bytes: the size of this process's latest piece.
        failure: why the latest piece could not be written, e.g. that the memory is full; None if it was.
    """

    def __init__(self, folder: Path, epoch: int, host_ranks: range) -> None:
        signing.private_folder(folder)
        self.folder, self.host_ranks = folder, host_ranks
        held = max(
            (_age(name)[0] + 1 for name in self._generation_names()), default=0
        )  # the hosts' launchers may count anew
        self.epoch = max(processes.current().exchange("counting the starts of snapshots", max(epoch, held)).values())
        self.bytes = 0
        self.failure: str | None = None
        self._is_divided = False  # this host has only parts of the state
        self._transfer: FolderTransfer | None = None
        self._addresses: list[str] = []
        self._neighbour = 0
        self._written: list[str] = []
        self._thread: threading.Thread | None = None

    def connect_hosts(self) -> None:
        """Let hosts keep copies of each other's pieces; all processes call it."""
        world = processes.current()
        self._transfer = FolderTransfer(self.folder, lambda name: PIECE.fullmatch(name) is not None, self._prune_copies)
        given = [self._transfer.address, self.host_ranks[0]]
        met = world.exchange("connecting the snapshots of the hosts", given)
        self._addresses = [met[rank][0] for rank in range(world.size)]
        first = self.host_ranks.stop % world.size  # of the next host
        ranks = [rank for rank in range(world.size) if met[rank][1] == first]
        self._neighbour = ranks[(world.rank - self.host_ranks[0]) % len(ranks)]

    def _prune_copies(self, name: str) -> None:
        """Remove copies of a process's pieces that are older than the latest `KEPT`."""
        rank = name.rpartition("/")[2]
        held = [generation for generation in self._generation_names() if (self.folder / generation / rank).exists()]
        for old in sorted(held, key=_age)[:-KEPT]:
            self._remove_piece(old, rank)

    def _remove_piece(self, generation: str, rank: str) -> None:
        shutil.rmtree(self.folder / generation / rank, ignore_errors=True)
        with contextlib.suppress(OSError):  # others have pieces there
            (self.folder / generation).rmdir()

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
        parts = {_start(index) for index in array.sharding.devices_indices_map(array.shape).values()}
        self._is_divided = self._is_divided or len(first) < len(parts)
        mine = [s for s in array.addressable_shards if first[_start(s.index)] == s.device]
        return [(number, _start(s.index), s.data) for s in mine if s.data.size]

    def _write(self, name: str, facts: str, parts: list) -> None:
        rank = processes.current().rank
        piece = self.folder / name / f"{rank:05d}"
        partial = piece.with_suffix(".partial")
        try:
            values = [(number, start, np.asarray(value)) for number, start, value in parts]
            if len(self._written) == KEPT and rank == self.host_ranks[0]:
                for other in [n for n in self._generation_names() if int(n.rpartition(".")[2]) < self.epoch]:
                    shutil.rmtree(self.folder / other, ignore_errors=True)
            for leftover in (partial, piece):
                shutil.rmtree(leftover, ignore_errors=True)
            # All processes have taken this step, so they have begun this snapshot or are about to, and have completed
            # the one before the last. The piece before that gives its files to the new one.
            reused, olds, self._written = 0, self._written[:-KEPT], self._written[-KEPT:]
            piece.parent.mkdir(exist_ok=True, mode=0o700)
            for old in olds:
                shutil.rmtree(partial, ignore_errors=True)
                (self.folder / old / piece.name).rename(partial)
                (partial / manifest.CHECKSUMS).unlink()
                reused = (partial / blocks.names(rank)[0]).stat().st_size
                self._remove_piece(old, piece.name)
            size, free = sum(value.nbytes for _, _, value in values), shutil.disk_usage(self.folder).free + reused
            if size > free:  # without filling the memory first, which other programs need
                raise OSError(errno.ENOSPC, f"{size / 2**20:,.0f} MB into {free / 2**20:,.0f} MB that are free")
            (partial / blocks.ARRAYS).mkdir(parents=True, exist_ok=True, mode=0o700)
            manifest.write_text(partial / manifest.STATE, facts)
            blocks.write(partial, rank, values)
            manifest.write(partial)
            partial.rename(piece)
            self.bytes = sum(file.stat().st_size for file in piece.rglob("*") if file.is_file())
            self._written.append(name)
            if self._transfer is not None and self._is_divided:
                self._transfer.send(self._addresses[self._neighbour], f"{name}/{rank:05d}")
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
        if self._transfer is not None:
            self._fetch_lost(before)
        mine = {name: contents for name in self._generation_names() if (contents := self._open(name)) is not None}
        gathered = processes.current().exchange("looking for snapshots", sorted(mine))
        common = set.intersection(*map(set, gathered.values()))
        names = [name for name in common if before is None or _age(name)[1] < before]
        if not names:
            return None
        name = max(names, key=_age)
        return _age(name)[1], mine[name]

    def _fetch_lost(self, before: int | None) -> None:
        """Send the pieces of the freshest generation to the processes that lost theirs; all processes call it."""
        world = processes.current()
        mine = {name: [int(piece.name) for piece in self._pieces(name)] for name in self._generation_names()}
        held = world.exchange("looking for lost snapshots", mine)
        names = {name for names in held.values() for name in names}
        for name in sorted(names, key=_age, reverse=True):  # as `latest` chooses
            if before is not None and _age(name)[1] >= before:
                continue
            holders: dict[int, int] = {}  # of each piece, its own process if that has it, else the first one
            for rank in range(world.size):
                for piece in held[rank].get(name, []):
                    holders[piece] = rank if piece == rank else holders.get(piece, rank)
            if holders.keys() != set(range(world.size)):
                continue
            for rank, holder in holders.items():
                if holder == world.rank and rank not in held[rank].get(name, []):
                    with contextlib.suppress(OSError):  # then that process has no piece, and the disk is taken
                        self._transfer.send(self._addresses[rank], f"{name}/{rank:05d}")
            break
        world.exchange("all lost snapshots are sent", None)

    def _pieces(self, name: str) -> list[Path]:
        """Return the pieces of a generation, this host's own first."""
        found = [path for path in (self.folder / name).glob("?????") if path.name.isdecimal()]
        return sorted(found, key=lambda path: (int(path.name) not in self.host_ranks, path.name))

    def _generation_names(self) -> list[str]:
        return [path.name for path in self.folder.iterdir() if GENERATION.match(path.name)]

    def _open(self, name: str) -> _Pieces | None:
        """Return the reader of this host's pieces of a generation; None if one is damaged, or missing and needed."""
        pieces = self._pieces(name)
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
            for number, found in self._blocks.blocks.items():  # copies of other hosts have replicated parts as well
                self._blocks.blocks[number] = list({block.start: (p, block) for p, block in reversed(found)}.values())
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


def _age(name: str) -> tuple[int, int]:
    """Return epoch and step of a generation, its order: a later epoch may do an earlier step again."""
    step, epoch = name.removeprefix("step_").split(".")
    return int(epoch), int(step)


def _start(index: Iterable[slice]) -> tuple[int, ...]:
    return tuple(s.start or 0 for s in index)
