"""On-disk cache of eager programs: a second start of a script neither traces nor lowers its first ops.

JAX's own cache is looked up by the lowered program, so before it can save the compilation, an op has been traced,
planned, lowered and hashed; that took a second start of a small training script half of its time beyond the imports.
Here a program is filed under its inputs:

    matmul, static attributes, layouts of its inputs, pins, donation │ sources of sbpjax, versions, devices, settings

Only values with the same name in every process can be filed: `text_of` gives it, and None for a user's closure, which
then takes the usual way. Beside programs there are *facts*: small answers that take a trace to find, such as which
inputs the backward of an op reads.

``SBPJAX_CACHE_DIR`` names the directory of the files, and ``off`` turns them off, as does ``SBPJAX_PROGRAM_CACHE=off``.
A file that this user's key did not sign (`signed_cache`), is not whole, or does not load, counts as absent. Only the
first few hundred programs of a process are looked up and filed: they are the start, and a long run shall not fill the
disk.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import os
import pathlib
import pickle
import platform
import sys
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from sbpjax._core.jax_private import config as _config
from sbpjax._core.jax_private import prepare_lapack
from sbpjax._core.planner import disk
from sbpjax._core.programs.rules import names
from sbpjax._core.runtime.optional_packages import LazyModule
from sbpjax._core.serialization import signed_cache
from sbpjax.sbp.algebra import sbp as Sbp
from sbpjax.sbp.layout import Layout
from sbpjax.sbp.placement import placement as Placement

executables = LazyModule("jax.experimental.serialize_executable")  # imports pickle and more


log = logging.getLogger("sbpjax.cache")

_FORMAT = 2
_MOST_PER_PROCESS = 400
_MOST_FILES = 4096
_lookups = 0
_pruned = False


def directory() -> pathlib.Path | None:
    """Return the directory of the cache, or None if it is off."""
    plans = disk.directory()
    if plans is None or os.environ.get("SBPJAX_PROGRAM_CACHE", "").lower() in ("off", "0", "none"):
        return None
    return plans.parent / "eager"


# ------------------------------------------------------------------------------------------------------------- names


def text_of(value: Any) -> str | None:
    """Return a text that names a value in every process, None if there is none.

    Functions have one if they can be found under their name in sbpjax or JAX, or carry ``made_of``: a tuple of values
    from which they were made, and nothing else.
    """
    if value is None or value.__class__ in (bool, int, float, complex, str, bytes):
        return f"{value.__class__.__name__} {value!r}"
    if isinstance(value, tuple):
        parts = [text_of(v) for v in value]
        return None if None in parts else f"{value.__class__.__name__}({', '.join(map(str, parts))})"
    if isinstance(value, Layout):
        return f"{text_of(value.placement)} {value.codes} {value.shape} {value.dtype}"
    if isinstance(value, Placement):
        return f"{_devices_text(value)} {value.axis_names}"
    if isinstance(value, Sbp):
        return repr(value)
    if isinstance(value, (np.dtype, jax.ShapeDtypeStruct)):
        return f"{value!r} {getattr(value, 'weak_type', '')}"
    made_of = getattr(value, "made_of", None)
    if made_of is not None:
        return text_of(made_of)
    return _import_path(value)


def _import_path(value: Any) -> str | None:
    module, path = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if not isinstance(module, str) or path is None or module.split(".")[0] not in ("sbpjax", "jax", "numpy"):
        return None
    # Never imported: a name that is not loaded is none that a function of this process came from.
    found = sys.modules.get(module)
    for name in path.split("."):
        found = getattr(found, name, None)
    return f"{module}:{path}" if found is value else None


@functools.lru_cache(maxsize=256)
def _devices_text(placement: Placement) -> str:
    devices = [(d.id, d.device_kind) for d in placement.devices.flat]
    return f"{placement.type} {placement.ranks.tolist()} {placement.hierarchy} {devices}"


# Once per process: it reads and hashes every source file, 0.2 s on a busy machine, which a start pays for its first op.
@functools.cache
def _hash_environment() -> str:
    """Return a hash of the environment of every program: sources, versions, and the machine it was compiled for."""
    found = hashlib.sha256()
    root = pathlib.Path(__file__).resolve().parents[3]
    for path in sorted(root.rglob("*.py")):
        # All sources, not those of the compiler alone: an op's formula is part of its program.
        found.update(str(path).encode() + path.read_bytes())
    client = jax.devices()[0].client
    found.update(
        repr(
            (
                *(_FORMAT, sys.version, jax.__version__, jax.lib.__version__, np.__version__, platform.uname()[1:]),
                *(client.platform, client.platform_version, _instructions()),
                *(os.environ.get(name) for name in ("XLA_FLAGS", "LIBTPU_INIT_ARGS", "NPROC")),
            )
        ).encode()
    )
    return found.hexdigest()


def _instructions() -> str:
    """Return the instruction sets of the processor: a program compiled for another may not run here."""
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            head = file.read(8192)
    except OSError:
        return platform.processor()
    wanted = ("model", "flags", "Features")
    return "".join(line for line in head.split("\n\n")[0].splitlines() if line.startswith(wanted))


def key_of(kind: str, *parts: Any) -> str | None:
    """Return the key of a program or a fact made from these parts; None if it cannot be filed, or shall not."""
    global _lookups
    if _lookups >= _MOST_PER_PROCESS or directory() is None or jax.process_count() > 1:
        return None
    text = text_of(parts)
    if text is None:
        return None
    _lookups += 1
    settings = [repr(value) for value in _config.trace_context()]
    known = [value for value in settings if " object at 0x" not in value]  # the axes of a `vmap` around: none, in an op
    # Parts of JAX that are loaded late, as Pallas, add theirs: off.
    while known and known[-1] in ("None", "False"):
        known.pop()
    return hashlib.sha256(f"{kind} {_hash_environment()} {known} {names()} {text}".encode()).hexdigest()


# ------------------------------------------------------------------------------------------------------------- files


def load(key: str | None) -> Any:
    """Return the value filed under a key, None if there is none."""
    folder = directory()
    if key is None or folder is None:
        return None
    try:
        body = signed_cache.read(folder, key)
        # A program is machine code, and JAX's own serialisation of it a pickle: both are for those who may run code
        # here. `signed_cache.read` has verified by now that this user's key signed these bytes under this name.
        return None if body is None else pickle.loads(body)
    except Exception as error:  # any error that a file of another making raises
        log.info("%s is not readable and is made anew: %s", key[:12], error)
        return None


def store(key: str | None, value: Any) -> None:
    """File a value under a key; a directory that cannot be written is no error."""
    folder = directory()
    if key is None or folder is None:
        return
    try:
        if signed_cache.write(folder, key, pickle.dumps(value)):
            _prune(folder)
    except (OSError, pickle.PicklingError, TypeError, AttributeError) as error:
        log.info("%s is not kept: %s", key[:12], error)


def _prune(folder: pathlib.Path) -> None:
    """Drop the older half of too many files, once per process."""
    global _pruned
    if _pruned:
        return
    _pruned = True
    files = list(folder.iterdir())
    if len(files) > _MOST_FILES:
        for path in sorted(files, key=lambda p: p.stat().st_mtime)[: len(files) // 2]:
            path.unlink(missing_ok=True)


# ---------------------------------------------------------------------------------------------------------- programs


def serialize_program(compiled: jax.stages.Compiled) -> tuple | None:
    """Return the serialized form of a program of `compilation_cache.compile_uncached`, None if there is none."""
    try:
        return executables.serialize(compiled)
    except Exception as error:  # programs over large constants or host callbacks, by several classes of errors
        log.info("a program is not kept: %s", error)
        return None


def load_program(data: tuple, devices: Sequence) -> Any:
    """Return a filed program, a `jax.stages.Compiled`; None if it does not load."""
    try:
        if b"lapack_" in data[0]:
            _initialize_lapack()
        return executables.deserialize_and_load(*data, backend=devices[0].client, execution_devices=list(devices))
    except Exception as error:  # as above
        log.info("a program is made anew: %s", error)
        return None


@functools.cache
def _initialize_lapack() -> None:
    """Initialize jaxlib's LAPACK functions, as JAX does when it first lowers a linear-algebra op.

    A program from disk is never lowered, and would call the null pointers that are there before. This imports SciPy,
    0.2 s to 0.4 s; so only programs that name such a function pay for it.
    """
    prepare_lapack()


def fast_call(compiled: Any) -> Callable:
    """Return the call of a compiled program without the Python that `jax.stages.Compiled` puts before it."""
    # No public name (jax 0.10): `jax.stages.Compiled.__call__` flattens and checks in Python, this in C++.
    call = compiled._executable.create_cpp_call(compiled._params)
    return compiled if call is None else call
