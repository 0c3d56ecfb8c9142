"""Cache folder of compiled programs and plans: layout, size limit, and the `sbpjax.cache` command.

    ~/.cache/sbpjax/ xla/     programs that JAX keeps, by their lowered text
                     eager/   eager ops, by their inputs
                     plans/   plans of graphs

Every process of this user shares it. A process that ends looks, at most once an hour for all of them, whether the files
take more than ``SBPJAX_CACHE_MB``, and drops those not used for longest. ``python -m sbpjax.cache info`` lists them,
``python -m sbpjax.cache clear`` drops it.
"""

from __future__ import annotations

import os
import pathlib
import time
from collections.abc import Sequence
from typing import NamedTuple

from sbpjax._core.runtime.commands import command_parser

DEFAULT_MB = 2048
_SWEPT_EVERY_S = 3600
_LEFT = 0.8  # the share of the size that a sweep leaves, so that the next process does not sweep again
_STAMP = "swept"
# With a folder of the user's choice, JAX's files are beside the others; nothing else there is touched.
_OF_JAX = ("-cache", "-atime")


class File(NamedTuple):
    """A file of the cache: its path, its size in bytes, and when it was last used, in seconds since 1970."""

    path: pathlib.Path
    size: int
    used: float


def root() -> pathlib.Path | None:
    """Return the folder of all caches, None if they are off."""
    chosen = os.environ.get("SBPJAX_CACHE_DIR", "")
    if chosen.lower() in ("off", "0", "none"):
        return None
    if chosen:
        return pathlib.Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return pathlib.Path(base) / "sbpjax"


def files() -> dict[str, list[File]]:
    """Return the files of each cache: ``"xla"``, ``"eager"``, ``"plans"``."""
    folder = root()
    found: dict[str, list[File]] = {"xla": [], "eager": [], "plans": []}
    if folder is None:
        return found
    places = [("xla", folder), *((name, folder / name) for name in found)]
    for name, place in places:
        try:
            entries = list(os.scandir(place))
        except OSError:  # not made yet, or not ours to read
            continue
        for entry in entries:
            if name == "xla" and not entry.name.endswith(_OF_JAX):
                continue
            try:
                if entry.is_file(follow_symlinks=False):
                    facts = entry.stat(follow_symlinks=False)
                    # A read is noted by the file system, on most of them once a day.
                    used = max(facts.st_atime, facts.st_mtime)
                    found[name].append(File(pathlib.Path(entry.path), facts.st_size, used))
            except OSError:  # another process has dropped it
                continue
    return found


def most_bytes() -> int:
    """Return the size limit of the files: ``SBPJAX_CACHE_MB``, else 2,048 MB."""
    value = os.environ.get("SBPJAX_CACHE_MB", "")
    return (int(value) if value.isdecimal() else DEFAULT_MB) * 1_000_000


def sweep(most: int | None = None) -> int:
    """Drop the files not used for longest if all take more than `most` bytes; return the dropped bytes."""
    most = most_bytes() if most is None else most
    everything = sorted((f for each in files().values() for f in each), key=lambda f: f.used)
    total = sum(f.size for f in everything)
    gone = 0
    if total > most:
        for file in everything:
            if total - gone <= _LEFT * most:
                break
            gone += _drop(file)
    return gone


def sweep_now_and_then() -> None:
    """Sweep if no process has done so for an hour; a folder that cannot be written is no error."""
    folder = root()
    if folder is None:
        return
    stamp = folder / _STAMP
    try:
        if stamp.exists() and time.time() - stamp.stat().st_mtime < _SWEPT_EVERY_S:
            return
        stamp.touch(mode=0o600)
        sweep()
    except OSError:
        return


def _drop(file: File) -> int:
    try:
        file.path.unlink()
    except OSError:  # dropped by another process, or not ours
        return 0
    return file.size


def info() -> str:
    """Return a summary of the cache, one line per kind of file."""
    folder = root()
    if folder is None:
        return "the cache is off: SBPJAX_CACHE_DIR=off"
    found = files()
    lines = [f"{name:6} {len(each):6,} files {_megabytes(each):10,.1f} MB" for name, each in found.items()]
    everything = [f for each in found.values() for f in each]
    most = f"of {most_bytes() / 1e6:,.0f} MB (SBPJAX_CACHE_MB)"
    total = f"{'all':6} {len(everything):6,} files {_megabytes(everything):10,.1f} MB {most}"
    return "\n".join([f"folder {folder}", *lines, total])


def clear() -> str:
    """Drop all files of the cache; return a summary of them. The user's key stays."""
    everything = [f for each in files().values() for f in each]
    dropped = [f for f in everything if _drop(f)]
    return f"dropped {len(dropped):,} files, {_megabytes(dropped):,.1f} MB"


def _megabytes(found: list[File]) -> float:
    return sum(f.size for f in found) / 1e6


def main(arguments: Sequence[str] | None = None) -> None:
    """Run ``python -m sbpjax.cache info|clear``.

    Raises:
        SystemExit: another command was given; the status is 2.
    """
    parser = command_parser("sbpjax.cache")
    parser.add_argument("command", choices=("info", "clear"), help="print the contents of the cache, or delete them")
    command = {"info": info, "clear": clear}[parser.parse_args(arguments).command]
    print(command())
