"""Manifest that marks a checkpoint as complete: size and checksum of every file, itself included.

    checksums.json    {"sha256": "…", "version": 2, "files": {"state.json": [312, 90551421], "arrays/00000.bin": …}}

The SHA-256 is that of this very file with 64 zeros in its place, so no byte of it can change unseen. It is written
last, before the directory is renamed. For block files it holds only the size: each block has its own checksum in the
index beside them (`blocks`), and that index is listed here.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import zlib
from pathlib import Path
from typing import Any

from sbpjax.errors import CheckpointError

from .tree import VERSION

CHECKSUMS, STATE = "checksums.json", "state.json"
STEP = re.compile(r"step_(\d{9})$")  # the name of a checkpoint in the directory of a `Manager`
_BLANK = "0" * 64
_CHUNK_BYTES = 1 << 22


def checksum(path: Path) -> int:
    """Return the CRC-32 of a file."""
    total = 0
    with open(path, "rb") as file:
        while block := file.read(_CHUNK_BYTES):
            total = zlib.crc32(block, total)
    return total


def write(directory: Path) -> None:
    """Write the manifest of all files that are below a directory."""
    files = {}
    for path in sorted(p for p in directory.rglob("*") if p.is_file()):
        crc = None if path.suffix == ".bin" else checksum(path)
        files[path.relative_to(directory).as_posix()] = [path.stat().st_size, crc]
    text = json.dumps({"sha256": _BLANK, "version": VERSION, "files": files})
    text = text.replace(_BLANK, hashlib.sha256(text.encode()).hexdigest(), 1)
    write_text(directory / CHECKSUMS, text)


def write_text(path: Path, text: str) -> None:
    """Write a file and sync it to the disk."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def read(directory: Path) -> tuple[int, dict[str, tuple[int, int | None]]]:
    """Return the version of a checkpoint, and size and checksum of each of its files.

    Raises:
        ValueError, OSError, KeyError, TypeError: the manifest is damaged.
    """
    text = (directory / CHECKSUMS).read_bytes().decode("utf-8")
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError(f"{CHECKSUMS} holds a {type(found).__name__}")
    digest = str(found.get("sha256"))
    if hashlib.sha256(text.replace(digest, _BLANK, 1).encode()).hexdigest() != digest:
        raise ValueError(f"{CHECKSUMS} has changed: its own checksum is another")
    return found["version"], {
        _checked_relative_name(name): _facts(name, facts) for name, facts in found["files"].items()
    }


def _checked_relative_name(name: str) -> str:
    if not name or name.startswith("/") or "\\" in name or ":" in name or ".." in name.split("/"):
        raise ValueError(f"{CHECKSUMS} names {name!r}, which is not below the checkpoint")
    return name


def _facts(name: str, facts: Any) -> tuple[int, int | None]:
    size, crc = facts
    if type(size) is not int or not (type(crc) is int or crc is None):
        raise ValueError(f"{CHECKSUMS} says {facts!r} of {name!r}")
    return size, crc


def find_fault(directory: Path, name: str, size: int, crc: int | None) -> str | None:
    """Return the fault of a file, None if it is as written."""
    file = directory / name
    if not file.is_file():
        return f"{name} is missing"
    if file.stat().st_size != size:
        return f"{name} has {file.stat().st_size} bytes, {size} were written"
    if crc is not None and checksum(file) != crc:
        return f"{name} has changed: its checksum is another"
    return None


def damaged_error(directory: Path, seen: str) -> CheckpointError:
    """Return the error for a checkpoint with changed files."""
    return CheckpointError(
        f"loading the checkpoint {str(directory)!r}",
        seen,
        "every file is as it was written; nothing was loaded",
        "take an earlier checkpoint: sbpjax.checkpoint.Manager(directory).steps()",
    )
