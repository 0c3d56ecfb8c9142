"""Memory-mapping limit of compiled CPU programs: drops JAX's cached programs before it is reached.

Linux lets a process have 65,530 mappings (``vm.max_map_count``). XLA:CPU (jaxlib 0.10) loads a program as about ten of
them, and where they run out it ends the process by a signal, after some six thousand programs. So after every `_OFTEN`
compilations they are counted, and above a share of the limit JAX drops its cached programs; those are compiled anew
when they are called again, or come from the cache on disk. Programs held by graphs and users stay. Where that leaves
too little room, there is an error before XLA ends the process.
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


def count_mappings() -> int:
    """Return the number of memory mappings of the process; 0 where the system does not report it."""
    try:
        return _MAPS.read_bytes().count(b"\n")
    except OSError:
        return 0


def mapping_limit() -> int:
    """Return the limit of memory mappings; 0 where the system does not report it."""
    try:
        return int(_MOST.read_text())
    except (OSError, ValueError):
        return 0


def free_mappings() -> None:
    """Drop JAX's cached programs if the process has many mappings."""
    allowed, before = mapping_limit(), count_mappings()
    if not allowed or before < _DROP * allowed:
        return
    jax.clear_caches()
    left = count_mappings()
    log.info("dropped programs of ops: %d memory mappings of %d, then %d", before, allowed, left)
    if left > _REFUSE * allowed:
        raise OutOfMemoryError(
            "compiling a program",
            f"{left} memory mappings of this process, of {allowed} that the system allows (vm.max_map_count)",
            "a program on CPU takes about ten of them, and XLA ends a process that has no more",
            f"free graphs that are no longer called, pad to fewer shapes, or sysctl -w vm.max_map_count={4 * allowed}",
        )


def count_program() -> None:
    """Count a compiled program, and call `free_mappings` every so often."""
    if next(_compilations) % _OFTEN == 0 and jax.default_backend() == "cpu":
        free_mappings()
