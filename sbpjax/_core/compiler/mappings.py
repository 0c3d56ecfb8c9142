"""Room for compiled programs on CPUs: a process may hold so many memory mappings, and each program takes about ten.

Linux lets a process have 65,530 mappings (``vm.max_map_count``). XLA:CPU (jaxlib 0.10) loads a program as about ten of
them, and where they run out it ends the process by a signal, after some six thousand programs. So after every
`_OFTEN` compilations they are counted, and above a share of what is allowed JAX drops the programs that it keeps for
calls to come; those are compiled anew when they are called again, or come from the cache on disk. What graphs and
users hold stays. Where that leaves too little room, there is an error before XLA ends the process.
"""

from __future__ import annotations

import itertools
import logging
from pathlib import Path

import jax

from sbpjax.errors import OutOfMemoryError

log = logging.getLogger("sbpjax")

_MAPS, _MOST = Path("/proc/self/maps"), Path("/proc/sys/vm/max_map_count")
_OFTEN = 64  # counting 60,000 mappings takes 30 ms, as long as a small program
_DROP, _REFUSE = 0.7, 0.95
_compilations = itertools.count(1)


def held() -> int:
    """Return how many memory mappings the process has; 0 where the system does not tell."""
    try:
        return _MAPS.read_bytes().count(b"\n")
    except OSError:
        return 0


def most() -> int:
    """Return how many it may have; 0 where the system does not tell."""
    try:
        return int(_MOST.read_text())
    except (OSError, ValueError):
        return 0


def make_room() -> None:
    """Drop programs that JAX keeps for calls to come, if the process has many mappings.

    Raises:
        OutOfMemoryError: what is still held leaves no room for more programs.
    """
    allowed, before = most(), held()
    if not allowed or before < _DROP * allowed:
        return
    jax.clear_caches()
    left = held()
    log.info("dropped programs of ops: %d memory mappings of %d, then %d", before, allowed, left)
    if left > _REFUSE * allowed:
        raise OutOfMemoryError(
            "compiling a program",
            f"{left} memory mappings of this process, of {allowed} that the system allows (vm.max_map_count)",
            "a program on CPU takes about ten of them, and XLA ends a process that has no more",
            f"free graphs that are no longer called, pad to fewer shapes, or sysctl -w vm.max_map_count={4 * allowed}",
        )


def compiled() -> None:
    """Note that a program was compiled, and make room for more now and then.

    Raises:
        OutOfMemoryError: there is none.
    """
    if next(_compilations) % _OFTEN == 0 and jax.default_backend() == "cpu":
        make_room()
