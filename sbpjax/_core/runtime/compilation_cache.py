"""JAX's compilation cache in a job of several processes: every rank writes its programs.

JAX lets process 0 alone write (jax 0.10). Its files serve no other process of CPUs, whose keys name the process's own
part of the topology, and none on another machine whose folder is its own: those would compile again at each start. On
accelerators the first process of a machine writes for all there. Only programs that sbpjax compiles are written; a
`jax.jit` of the user keeps JAX's rule.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

import jax

from sbpjax._core.jax_private import compilation_cache, compiler, distributed, replaced_in_thread


@contextlib.contextmanager
def rank_writes() -> Iterator[None]:
    """Write the programs that the block compiles on this thread, whatever the rank of this process."""
    if not distributed.global_state.process_id:
        yield
        return
    with replaced_in_thread(compiler, "_cache_write", _make_write):
        yield


def _make_write(by_jax):
    def write(key, seconds, name, backend, executable, *host_callbacks) -> None:  # none since jax 0.12
        is_writer = backend.platform == "cpu" or os.environ.get("LOCAL_RANK", "0") == "0"
        if not is_writer or any(host_callbacks):
            by_jax(key, seconds, name, backend, executable, *host_callbacks)
            return
        with contextlib.suppress(Exception):  # of the disk, or of a program that has no serialized form
            compilation_cache.put_executable_and_time(key, name, executable, backend, int(seconds))

    return write


def compile_cached(lowered: jax.stages.Lowered) -> jax.stages.Compiled:
    """Compile a program through the cache."""
    with rank_writes():
        return lowered.compile()


def compile_uncached(lowered: jax.stages.Lowered) -> jax.stages.Compiled:
    """Compile a program past the cache.

    Programs that jaxlib 0.10 has read from there are serialized again without their functions, and fail with NOT_FOUND.
    No public switch turns the cache off for one compilation (jax 0.10); goes when jaxlib serializes such programs.
    """
    with replaced_in_thread(compilation_cache, "is_cache_used", lambda by_jax: lambda backend: False):
        return lowered.compile()
