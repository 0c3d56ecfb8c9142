"""Checkpoint reader: find it on disk, validate its descriptions and checksums, read its arrays."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import jax
import numpy as np

from sbpjax._core.compiler import conversions
from sbpjax._core.runtime import processes
from sbpjax._core.runtime.gc_pause import pause_gc
from sbpjax._core.runtime.progress import show_progress
from sbpjax.errors import CheckpointError
from sbpjax.sbp import Layout

from . import blocks, manifest, tree
from .codec import numpy_dtype
from .manifest import CHECKSUMS, STATE, STEP, damaged_error
from .saving import stored_layout


def locate_checkpoint(path: str | os.PathLike) -> Path:
    """Return the path of a checkpoint, or the one beside it left by a crash between the two renames of a save.

    Raises:
        CheckpointError: there is no checkpoint.
    """
    path = Path(path).absolute()
    for candidate in (path, path.with_name(path.name + ".old")):
        if (candidate / CHECKSUMS).exists():
            return candidate
    operation = f"the checkpoint {str(path)!r}"
    rule = "a checkpoint is a directory that sbpjax.save or sbpjax.checkpoint.save wrote"
    steps = sorted(p for p in path.iterdir() if STEP.match(p.name)) if path.is_dir() else []
    if steps:
        seen = f"the directory of a checkpoint.Manager, with {steps[-1].name} in it"
        raise CheckpointError(operation, seen, rule, "give manager.path(step), or manager.restore(step)")
    seen = "no such directory" if not path.exists() else f"no {CHECKSUMS} in it: it was not written to the end"
    fix = "check the path; sbpjax.checkpoint.Manager(directory).latest() finds the last complete one"
    raise CheckpointError(operation, seen, rule, fix)


class _Reading:
    def __init__(self, directory: Path, part: str) -> None:
        self._directory, self._what = directory, part

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, Exception) and not isinstance(error, CheckpointError):
            seen = f"{self._what}: {type(error).__name__}: {str(error)[:300]}"
            raise damaged_error(self._directory, seen) from None


class Contents:
    """Reader of a checkpoint whose descriptions are valid.

    Args:
        path: its directory.

    Attributes:
        directory: where it was found.
        tensors: metadata of each tensor and array by name: shape, dtype, sbp, placement.
        state: its structure.

    Raises:
        CheckpointError: there is none, its descriptions are damaged, or it is of another version.
    """

    def __init__(self, path: str | os.PathLike) -> None:
        self.directory = locate_checkpoint(path)
        with self.reading(CHECKSUMS):
            version, self._files = manifest.read(self.directory)
            self._check_version(version)
        self._blocks = blocks.Files(self.directory)
        self._described = {n for n in self._files if n.endswith(".json")}
        with self.reading("its index"), pause_gc():
            for name in sorted(self._described | {STATE}):
                self._check(name)
        with self.reading(STATE):
            facts = json.loads((self.directory / STATE).read_text(encoding="utf-8"))
            self.tensors: dict[str, Any] = facts["tensors"]
            self.state = facts["state"]
            self._check_facts()

    def _check_version(self, version: int) -> None:
        if version != manifest.VERSION:
            rule = f"this version of sbpjax reads checkpoints of version {manifest.VERSION}"
            operation = f"loading {self.directory}"
            raise CheckpointError(operation, f"version {version}", rule, "use the sbpjax that wrote it, or a newer one")

    def _check(self, name: str) -> None:
        if name not in self._files:
            raise ValueError(f"{CHECKSUMS} does not name {name}")
        fault = manifest.find_fault(self.directory, name, *self._files[name])
        if fault is not None:
            raise damaged_error(self.directory, fault)
        if name != STATE:
            process = int(Path(name).stem)
            if name != blocks.names(process)[1]:
                raise ValueError(f"{CHECKSUMS} names {name!r}")
            self._blocks.add(process, json.loads((self.directory / name).read_text(encoding="utf-8")))

    def _check_facts(self) -> None:
        for number, facts in enumerate(self.tensors.values()):
            shape, dtype = tuple(facts["shape"]), numpy_dtype(facts["dtype"])
            if not all(type(n) is int and n >= 0 for n in shape):
                raise ValueError(f"a shape {shape}")
            self._check_covered(number, shape, self._blocks.count_elements(number, shape, dtype.itemsize))
        unknown = [n for n in tree.names_of(self.state) if n not in self.tensors]
        if unknown:
            raise ValueError(f"its structure names {unknown[:3]}, which it does not describe")

    def _check_covered(self, number: int, shape: tuple[int, ...], count: int) -> None:
        if count != math.prod(shape):
            raise ValueError(f"tensor {number} of shape {list(shape)} has {count} of its elements")

    def reading(self, part: str) -> _Reading:
        """Return a context in which any error of a damaged file becomes a CheckpointError."""
        return _Reading(self.directory, part)

    def verify(self) -> None:
        """Compare the size and checksum of every file; all processes call it, each reads its share.

        Raises:
            CheckpointError: a file is missing, truncated or changed; all processes raise it.
        """
        world = processes.current()
        faults: list[str] = []
        try:
            with self.reading("verifying"):
                files = [item for item in sorted(self._files.items()) if item[0] not in self._described]
                faults += [f for n, (size, crc) in files[world.rank :: world.size] if (f := self._fault(n, size, crc))]
                for process, block in [] if faults else self._blocks.all_blocks()[world.rank :: world.size]:
                    if not self._blocks.is_intact(process, block):
                        name = list(self.tensors)[block.tensor]
                        faults.append(f"{blocks.names(process)[0]} has changed: the checksum of {name} is another")
        except CheckpointError as error:
            faults.append(str(error).split("\n")[1].strip())
        gathered = world.exchange(f"verifying {self.directory}", faults)
        faults = [f for theirs in gathered.values() for f in theirs]
        if faults:
            more = f" and {len(faults) - 4} more" if len(faults) > 4 else ""
            raise damaged_error(self.directory, "; ".join(faults[:4]) + more)

    def _fault(self, name: str, size: int, crc: int | None) -> str | None:
        return manifest.find_fault(self.directory, name, size, crc)

    def dtype(self, name: str) -> np.dtype:
        """Return the dtype that a tensor was saved in."""
        return numpy_dtype(self.tensors[name]["dtype"])

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the logical shape of a tensor."""
        return tuple(self.tensors[name]["shape"])

    def is_array(self, name: str) -> bool:
        """Return whether it was a NumPy array, not a tensor."""
        return "index" in self.tensors[name]

    def check_parts(self, targets: dict[str, Layout | None]) -> None:
        """Raise if this process cannot read its parts of some layouts: a checkpoint has all of each tensor."""

    def read(self, targets: dict[str, Layout | None]) -> dict[str, Any]:
        """Return the physical arrays of the wanted layouts, whole NumPy arrays where no layout is given.

        Raises:
            CheckpointError: a file cannot be read.
        """
        even = {n: None if layout is None else stored_layout(layout) for n, layout in targets.items()}
        found = {}
        total = sum(nbytes(self.tensors[n]) for n in even)
        with self.reading("reading"), show_progress(f"loading {self.directory}", total) as progress:
            numbers = {n: i for i, n in enumerate(self.tensors)}
            for name, layout in even.items():
                found[name] = self._read(name, numbers[name], layout)
                progress.advance(nbytes(self.tensors[name]))
        for name, layout in targets.items():
            start = even[name]
            if layout is not None and start is not None:
                found[name], _ = conversions.convert(found[name], start, layout.placement, layout.sbp)
        return found

    def _read(self, name: str, number: int, layout: Layout | None) -> Any:
        shape, dtype = self.shape(name), self.dtype(name)
        if layout is None:
            return self._blocks.read(number, shape, dtype, tuple(slice(0, n) for n in shape))
        read = lambda index: self._blocks.read(number, shape, dtype, index)  # noqa: E731
        return jax.make_array_from_callback(shape, layout.sharding, read)


def nbytes(facts: dict) -> int:
    """Return the bytes of a tensor's logical value."""
    return numpy_dtype(facts["dtype"]).itemsize * math.prod(facts["shape"])
