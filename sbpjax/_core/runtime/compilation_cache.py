"""JAX's compilation cache in a job of several processes: every rank writes its programs.

JAX lets process 0 alone write (jax 0.10). Its files serve no other process of CPUs, whose keys name the process's own
part of the topology, and none on another machine whose folder is its own: those would compile again at each start. On
accelerators the first process of a machine writes for all there. Only programs that sbpjax compiles are written; a
`jax.jit` of the user keeps JAX's rule.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator

import jax

from sbpjax._core.jax_private import compilation_cache, compiler, distributed

_this_thread = threading.local()  # `writes`: it compiles a program of sbpjax
_compilations, _lock, _jax_write = 0, threading.Lock(), None


@contextlib.contextmanager
def rank_writes() -> Iterator[None]:
    """Write the programs that the block compiles, whatever the rank of this process."""
    global _compilations, _jax_write
    if not distributed.global_state.process_id or getattr(_this_thread, "writes", False):
        yield
        return
    with _lock:
        if not _compilations:
            _jax_write, compiler._cache_write = compiler._cache_write, _write
        _compilations += 1
    _this_thread.writes = True
    try:
        yield
    finally:
        _this_thread.writes = False
        with _lock:
            _compilations -= 1
            if not _compilations:
                compiler._cache_write = _jax_write


def compile_cached(lowered: jax.stages.Lowered) -> jax.stages.Compiled:
    """Compile a program through the cache."""
    with rank_writes():
        return lowered.compile()


def _write(key, seconds, name, backend, executable, host_callbacks) -> None:
    is_writer = backend.platform == "cpu" or os.environ.get("LOCAL_RANK", "0") == "0"
    if not (is_writer and getattr(_this_thread, "writes", False)) or host_callbacks:
        _jax_write(key, seconds, name, backend, executable, host_callbacks)
        return
    with contextlib.suppress(Exception):  # of the disk, or of a program that has no serialized form
        compilation_cache.put_executable_and_time(key, name, executable, backend, int(seconds))
