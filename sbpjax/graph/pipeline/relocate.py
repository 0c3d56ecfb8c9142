"""Equal tasks are compiled once: equal stages differ only in their devices.

XLA binds an executable to devices when it is compiled. A serialised one can be loaded with other compile options, so
the executable for the devices of one stage is loaded for those of the next, in a tenth of the time or less. This is
done on CPU, where it was tried; elsewhere every task is compiled as ever, and JAX's cache serves the next start. Only a
freshly compiled executable can be moved: one from that cache loses its functions when it is serialised again.
"""

from __future__ import annotations

import io
import logging
from typing import Any

import jax
import numpy as np

from sbpjax._core.jax_private import compiler
from sbpjax._core.runtime.optional_packages import LazyModule

executables = LazyModule("jax.experimental.serialize_executable")


log = logging.getLogger("sbpjax.pipeline")


def relocate_program(compiled: Any, source: list, target: list) -> Any:
    """Return a compiled program bound to other devices, None if that cannot be done here.

    Args:
        compiled: a `jax.stages.Compiled`.
        source: the devices it is bound to, in the order of its mesh.
        target: those it shall be bound to, as many.
    """
    try:
        return _relocate_program(compiled, source, target)
    except Exception as why:  # private names of JAX, and refusals of a backend: compiling always works
        log.info("an equal stage is compiled again: %s: %s", type(why).__name__, why)
        return None


def _relocate_program(compiled: Any, source: list, target: list) -> Any:
    payload, in_tree, out_tree = executables.serialize(compiled)
    client = target[0].client
    numbers = np.array([[d.id for d in target]])
    options = compiler.get_compile_options(1, len(target), device_assignment=numbers, backend=client)
    moved = {a.id: b for a, b in zip(source, target, strict=True)}

    class Unpickler(executables._JaxPjrtUnpickler):
        def persistent_load(self, pid: tuple) -> Any:
            if pid[0] == "exec":
                return client.deserialize_executable(pid[1], self.execution_devices, options)
            return moved[pid[1]] if pid[0] == "device" else client

    unloaded, args_info, no_kwargs = Unpickler(io.BytesIO(payload), client, target).load()
    return jax.stages.Compiled(unloaded.load(), [], in_tree.unflatten(args_info), out_tree, no_kwargs=no_kwargs)
