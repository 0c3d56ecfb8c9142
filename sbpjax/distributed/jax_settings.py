"""Settings of Python and JAX applied on importing sbpjax, before any backend starts.

* 64-bit types are on: ``sbpjax.arange(3).dtype`` is ``int64``, as in PyTorch.
* Compiled programs persist in a user cache directory, so the second start of a script does not compile again. A
  cache that the user configured is kept; ``SBPJAX_CACHE_DIR`` names another directory, ``SBPJAX_CACHE_DIR=off``
  disables it. A directory that others may write to is not used: its writers could choose the code that runs here.
* Errors show the user's frames alone: see `_core.runtime.tracebacks`.
* XLA's CPU thread pool and the number of CPU devices: see `sbpjax.env`.
"""

from __future__ import annotations

import atexit
import os
from typing import Any

import jax

from sbpjax._core.runtime import tracebacks
from sbpjax._core.serialization import cache_folder, signing
from sbpjax.errors import UnsafeFileError

from . import env


def _enable_cache() -> None:
    config: Any = jax.config  # its flags are made at run time
    if config.jax_compilation_cache_dir or os.environ.get("JAX_COMPILATION_CACHE_DIR"):
        return
    chosen = os.environ.get("SBPJAX_CACHE_DIR", "")
    if chosen.lower() in ("off", "0", "none"):
        return
    given = bool(chosen)
    if not given:
        root = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
        chosen = os.path.join(root, "sbpjax", "xla")
    try:  # JAX runs the programs in it, regardless of their author
        signing.private_folder(chosen if given else os.path.dirname(chosen))
        signing.private_folder(chosen)
    except UnsafeFileError as error:
        signing.warn_once(f"compiled programs are not kept: {error}")
        return
    except OSError:  # a read-only home: run without the cache
        return
    jax.config.update("jax_compilation_cache_dir", chosen)
    atexit.register(cache_folder.sweep_now_and_then)
    # Eager programs are many and small; all of them are worth keeping.
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)


def apply() -> None:
    """Configure JAX for sbpjax. Touches no device."""
    tracebacks.fold_tracebacks()
    jax.config.update("jax_enable_x64", True)
    _enable_cache()
    env.prepare_process()


apply()
