"""Engine options; OpenVINO and ONNX Runtime: compile an ONNX model to a function of NumPy arrays.

OpenVINO keeps compiled models in the folder of sbpjax's caches, under the digest of the model, so that a second process
loads it. Both engines are optional: the extras `openvino` and `onnx`.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from sbpjax._core.runtime.optional_packages import pip_install
from sbpjax._core.serialization import cache_folder
from sbpjax.errors import EngineError

ENGINES = ("openvino", "onnxruntime", "tensorrt", "iree", "xla")
PRECISIONS = {
    "openvino": ("float32", "bfloat16", "float16", "int8"),
    "onnxruntime": ("float32",),
    "tensorrt": ("float32", "float16"),
    "iree": ("float32",),
    "xla": ("float32",),
}


@dataclass(frozen=True)
class Engine:
    """An engine under an inference graph; part of the key of a program.

    Attributes:
        name: one of `ENGINES`; ``"xla"`` is XLA with the weights as constants.
        precision: the type in which it may compute; tensors stay as they are. ``"bfloat16"`` is fast where the
            processor has units for it; ``"int8"`` keeps matrices of weights in 8 bits and computes in float32.
        verify: compare the first result with XLA's.
        threads: the number of threads; None for its own choice.
    """

    name: str
    precision: str = "float32"
    verify: bool = True
    threads: int | None = None

    def __str__(self) -> str:
        return f"{self.name}, {self.precision}{'' if self.verify else ', not verified'}"


Run = Callable[[Sequence[np.ndarray]], list[np.ndarray]]
EXTRAS = {"openvino": "openvino", "onnxruntime": "onnx", "onnx": "onnx", "nncf": "int8"}
EXTRAS |= dict.fromkeys(["iree.runtime", "iree.compiler", "iree.compiler.version"], "iree")
_TENSORRT = "TensorrtExecutionProvider"
_HINTS = {"float32": "f32", "bfloat16": "bf16", "float16": "f16", "int8": "f32"}
_LARGEST = 2**31 - 2**20  # bytes that one message of protobuf takes


def module(name: str, operation: str) -> ModuleType:
    """Return an optional package."""
    try:
        with _no_telemetry():
            return importlib.import_module(name)
    except ImportError as error:
        extra = EXTRAS[name]
        raise EngineError(
            operation,
            f"no module {name}: {error}",
            f"the engine is a package of its own, in sbpjax's extra {extra!r}",
            pip_install(extra),
        ) from None


@contextlib.contextmanager
def _no_telemetry() -> Iterator[None]:
    """Keep OpenVINO 2026.4 from sending notes of its use: it forks for that, and a forked process of JAX may hang."""
    known = sys.modules.get("openvino_telemetry", contextlib)
    sys.modules["openvino_telemetry"] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        if known is contextlib:
            del sys.modules["openvino_telemetry"]
        else:
            sys.modules["openvino_telemetry"] = known


def compile_model(model: Any, engine: Engine, operation: str) -> Run:
    """Return a function that runs a model."""
    content = _content(model, operation)
    make = {"openvino": _openvino, "onnxruntime": _onnxruntime, "tensorrt": _onnxruntime}[engine.name]
    package = module("openvino" if engine.name == "openvino" else "onnxruntime", operation)
    try:
        return make(package, content, engine)
    # Each engine raises errors of its own classes.
    except Exception as error:
        raise EngineError(
            operation,
            f"{engine.name} {package.__version__} says: {str(error).strip().splitlines()[-1][:300]}",
            "an engine runs the operations and element types that it has",
            "leave the engine out for this graph, or try another one: enable_openvino, enable_onnxruntime",
        ) from error


def check(engine: Engine, operation: str) -> None:
    """Raise unless an engine is there."""
    if engine.name == "iree":
        module("iree.runtime", operation)
        module("iree.compiler", operation)
        return
    package = module("openvino" if engine.name == "openvino" else "onnxruntime", operation)
    module("onnx", operation)
    if engine.precision == "int8":
        module("nncf", operation)
    if engine.name == "tensorrt" and _TENSORRT not in package.get_available_providers():
        there = ", ".join(package.get_available_providers())
        raise EngineError(
            operation,
            f"onnxruntime {package.__version__} without TensorRT: it has {there}",
            "TensorRT runs on NVIDIA GPUs only, here by ONNX Runtime's provider of that name",
            "pip install onnxruntime-gpu tensorrt, on a machine with a GPU; on CPUs enable_openvino(True)",
        )


def _content(model: Any, operation: str) -> bytes:
    size = model.ByteSize()
    if size > _LARGEST:
        seen, rule = f"a model of {size / 2**30:.1f} GiB", "a model in one message has less than 2 GiB"
        raise EngineError(
            operation, seen, rule, "graph.export(directory, onnx=True): its weights are stored beside the model"
        )
    return model.SerializeToString(deterministic=True)


# One for the process. OpenVINO 2026.4 maps a stack for signal handlers per Core, and a Core that is freed restores the
# stack of the one before it, freed or not: then the next signal, such as Ctrl-C, is a segmentation fault.
@functools.cache
def _openvino_core(ov: Any) -> Any:
    return ov.Core()


def _openvino(ov: Any, content: bytes, engine: Engine) -> Run:
    core = _openvino_core(ov)
    options: dict[str, Any] = {"INFERENCE_PRECISION_HINT": _HINTS[engine.precision]}
    options["PERFORMANCE_HINT"] = "LATENCY"
    if engine.threads is not None:
        options["INFERENCE_NUM_THREADS"] = engine.threads
    folder = cache_folder.root()
    if folder is not None:
        options["CACHE_DIR"] = str(folder / "openvino")
    model = core.read_model(content)
    if engine.precision == "int8":
        _compress(model)
    ready = core.compile_model(model, "CPU", options)
    count = len(ready.outputs)
    # One request for each call in flight: a request has one set of buffers, and calls come from several threads.
    free: list[Any] = []

    def run(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        request = free.pop() if free else ready.create_infer_request()
        try:
            found = request.infer(list(arrays), share_inputs=True)
            return [np.array(found[i]) for i in range(count)]
        finally:
            free.append(request)

    return run


def _compress(model: Any) -> None:
    """Round matrices of weights to 8 bits, in place."""
    passes, nncf = (importlib.import_module(name) for name in ("openvino.passes", "nncf"))
    nncf.set_log_level(logging.ERROR)
    manager = passes.Manager()
    manager.register_pass(passes.ConstantFolding())  # NNCF 3.4 sees no weight after a transposition
    manager.run_passes(model)
    with contextlib.redirect_stdout(io.StringIO()):  # a progress bar
        nncf.compress_weights(model, mode=nncf.CompressWeightsMode.INT8_SYM)


def _onnxruntime(ort: Any, content: bytes, engine: Engine) -> Run:
    options = ort.SessionOptions()
    options.log_severity_level = 3
    if engine.threads is not None:
        options.intra_op_num_threads = engine.threads
    providers: list[Any] = ["CPUExecutionProvider"]
    if engine.name == "tensorrt":
        short = {"trt_fp16_enable": engine.precision == "float16"}
        providers = [(_TENSORRT, short), "CUDAExecutionProvider", *providers]  # the others: fallbacks
    session = ort.InferenceSession(content, options, providers=providers)
    names = [port.name for port in session.get_inputs()]

    def run(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        return session.run(None, dict(zip(names, arrays, strict=True)))

    return run
