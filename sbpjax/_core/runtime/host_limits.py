"""Limits of the host for this process: CPU cores, and memory that it may still allocate (Linux).

That memory is the least of three: the free memory of the machine, the rest of the container's control group, and the
rest of ``ulimit -v``. A system that hands out more than it has ends a process when it writes there, so the size of a
large array is compared with this first.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

try:
    import resource
except ImportError:  # Windows has none
    resource = None

_PROC = Path("/proc")
_GROUP = Path("/sys/fs/cgroup")
_UNLIMITED = 1 << 60  # version 1 of control groups writes a number near 2^63 for no limit


def cores() -> int:
    """Return the number of cores that this process may use; all of the machine where the system does not report it."""
    allowed = getattr(os, "sched_getaffinity", None)  # macOS and Windows have none
    return os.cpu_count() or 1 if allowed is None else len(allowed(0))


def free_bytes() -> int | None:
    """Return the bytes that this process may still allocate; None where the system does not report it."""
    found = [n for n in (_machine_free_bytes(), _cgroup_free_bytes(), _of_process()) if n is not None]
    return max(0, min(found)) if found else None


def _machine_free_bytes() -> int | None:
    found = _numbers(_PROC / "meminfo")
    if "MemAvailable" not in found:
        return None
    return (found["MemAvailable"] + found.get("SwapFree", 0)) << 10


def _cgroup_free_bytes() -> int | None:
    for limit, used in (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    ):
        most, now = _number(_GROUP / limit), _number(_GROUP / used)
        if most is not None and now is not None and most < _UNLIMITED:
            # The page cache counts as used, but can be freed.
            stat = _numbers((_GROUP / used).parent / "memory.stat")
            return most - now + stat.get("inactive_file", stat.get("total_inactive_file", 0))
    return None


def _of_process() -> int | None:
    if resource is None:
        return None
    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    used = _numbers(_PROC / "self" / "status").get("VmSize")
    return None if most == resource.RLIM_INFINITY or used is None else most - (used << 10)


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):  # version 2 writes "max" for no limit
        return None


def _numbers(path: Path) -> dict[str, int]:
    """Return the numbers of a file of the system, one name a line: ``MemFree:  1024 kB``."""
    found = {}
    with contextlib.suppress(OSError):
        for line in path.read_text().splitlines():
            words = line.split()
            if len(words) > 1 and words[1].isdigit():
                found[words[0].rstrip(":")] = int(words[1])
    return found
