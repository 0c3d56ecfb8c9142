"""IREE engine: compiles and runs a StableHLO program without conversion to ONNX.

IREE is optional, the extra `iree`. It compiles for this processor, in seconds to a minute, and runs programs whose
sizes are all fixed. Compiled programs are kept in the folder of sbpjax's caches, signed: to read one is to run it.
"""

from __future__ import annotations

import contextlib
import hashlib
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sbpjax._core.serialization import cache_folder
from sbpjax._core.serialization import signed_cache as kept
from sbpjax.errors import EngineError, SignatureError

from .runtimes import Run, module

_OPTIONS = ["--iree-llvmcpu-target-cpu=host"]


def run_by_iree(exported: Any, weights: dict[int, np.ndarray], operation: str) -> Run:
    """Return a function of the inputs that are neither weights nor unused, as NumPy arrays.

    ``weights``: inputs that stay as they are, by their numbers among all.
    """
    free = [aval for aval in exported.in_avals if not all(isinstance(n, int) for n in aval.shape)]
    if free:
        rule = "IREE 3.13 runs programs whose sizes are all fixed"
        fix = "export without dynamic_batch=True, or enable_openvino(True)"
        raise EngineError(operation, f"an input {free[0].str_short()} with a free size", rule, fix)
    runtime = module("iree.runtime", operation)
    try:
        binary = _binary(exported.mlir_module_serialized, operation)
        context = runtime.SystemContext(config=runtime.Config("local-task"))
        made = runtime.VmModule.copy_buffer(context.instance, binary)
        context.add_vm_module(made)
        main, device = context.modules[made.name]["main"], context.config.device
        held = {i: runtime.asdevicearray(device, np.ascontiguousarray(a)) for i, a in weights.items()}
    except EngineError:
        raise
    # It raises errors with the output of its compiler.
    except Exception as error:
        details = [line for line in str(error).splitlines() if "error:" in line] or str(error).strip().splitlines()
        raise EngineError(
            operation,
            f"iree: {details[0].strip()[:300]}",
            "an engine runs the operations and element types that it has",
            "leave the engine out for this graph, or try another one: enable_openvino, enable_onnxruntime",
        ) from error
    kept = list(exported.module_kept_var_idx)
    several = len(exported.out_avals) > 1

    def run(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        given = iter(arrays)
        found = main(*(held[i] if i in held else next(given) for i in kept))
        return [np.asarray(out.to_host()) for out in (found if several else [found])]

    return run


def _binary(program: bytes, operation: str) -> bytes:
    """Return the compiled program, from the cache if it is there."""
    compiler = module("iree.compiler", operation)
    folder = cache_folder.root()
    details = repr((module("iree.compiler.version", operation).VERSION, _OPTIONS, _processor())).encode()
    key = hashlib.sha256(details + program).hexdigest()
    place = None if folder is None else folder / "iree"
    name = f"{key}.vmfb"
    if place is not None:
        # A program without this user's signature is not run, but compiled anew.
        with contextlib.suppress(SignatureError, OSError):
            found = kept.read(place, name)
            if found is not None:
                return found
    made = compiler.compile_str(program, target_backends=["llvm-cpu"], input_type="stablehlo", extra_args=_OPTIONS)
    if place is not None:
        with contextlib.suppress(OSError):
            kept.write(place, name, made)
    return made


def _processor() -> str:
    """Return the features of the processor: a folder of caches may be shared with another machine."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    return next((line for line in lines if line.startswith(("flags", "Features"))), platform.machine())
