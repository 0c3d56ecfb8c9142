"""Programs on an inference engine, with their weights as constants of the engine's model.

    run = EngineProgram("graph", exported, weights=range(1, 63), engine=Engine("openvino"), reference=program.call)
    outs = run(seed, *arrays, *arguments)          # the inputs and outputs of XLA's program

The weights of the first call become constants of the engine's model: it folds norms into convolutions and packs
matrices once. A weight that is another array in a later call means a model made anew. The first result is compared with
XLA's (`Engine.verify`).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from sbpjax._core.runtime.ambient_mesh import jit_without_mesh
from sbpjax._core.runtime.optional_packages import LazyModule
from sbpjax.errors import EngineError

from .by_iree import run_by_iree
from .runtimes import Engine, Run, check, compile_model, module

ir = LazyModule("jax.extend.mlir.ir")  # only some engines need MLIR
stablehlo, chlo, sdy = (LazyModule(f"jax.extend.mlir.dialects.{name}") for name in ("stablehlo", "chlo", "sdy"))
onnx = LazyModule("sbpjax._core.engines.onnx")  # likewise; and onnx is an extra


log = logging.getLogger("sbpjax._core.engines")

# The tolerance of results, relative to the largest number of an output: sums in another order, and short types.
TOLERANCE = {"float32": 1e-3, "bfloat16": 0.1, "float16": 0.05, "int8": 0.1}


class EngineProgram:
    """A program on an engine.

    Args:
        operation: the call, for errors.
        exported: the program, a `jax.export.Exported`.
        weights: which of its inputs are constants.
        engine: the engine and its options.
        reference: the program by XLA, a function of the same inputs.

    Raises:
        EngineError: the engine is not installed.
    """

    def __init__(
        self, operation: str, exported: Any, weights: Sequence[int], engine: Engine, reference: Callable[..., Any]
    ) -> None:
        self._operation, self._exported, self._engine, self._reference = operation, exported, engine, reference
        self._weights = sorted(weights)
        count = len(exported.in_avals)
        self._others = sorted(set(range(count)) - set(self._weights))
        self._held: list[Any] | None = None
        self._run: Any = None
        self._lock = threading.Lock()
        self._kept = list(exported.module_kept_var_idx)
        self._dtypes = [aval.dtype for aval in exported.in_avals]
        if engine.name != "xla":
            check(engine, operation)

    def __call__(self, *inputs: Any) -> list[Any]:
        """Return the outputs, as jax arrays."""
        held = self._held
        if held is None or any(inputs[i] is not array for i, array in zip(self._weights, held)):
            with self._lock:
                return self._build_and_run(inputs)
        return self._outputs(self._run, inputs)

    def as_text(self) -> str:
        """Return the program as XLA would run it."""
        return self._exported.mlir_module()

    def _build_and_run(self, inputs: Sequence[Any]) -> list[Any]:
        if self._held is not None:
            log.warning("%s: a weight was written; %s gets the model anew", self._operation, self._engine.name)
        run = self._make_run(inputs)
        outs = self._outputs(run, inputs)
        if self._engine.verify:
            self._compare(outs, self._reference(*inputs))
        self._run, self._held = run, [inputs[i] for i in self._weights]
        return outs

    def _make_run(self, inputs: Sequence[Any]) -> Any:
        weights = {i: inputs[i] for i in self._weights}
        if self._engine.name == "xla":
            return _fold_weights(self._exported, weights, len(inputs))
        if self._engine.name == "iree":
            return run_by_iree(self._exported, {i: np.asarray(a) for i, a in weights.items()}, self._operation)
        model = onnx_model(self._operation, self._exported, {i: np.asarray(a) for i, a in weights.items()})
        return compile_model(model, self._engine, self._operation)

    def _outputs(self, run: Any, inputs: Sequence[Any]) -> list[Any]:
        if self._engine.name == "xla":
            return run(*[inputs[i] for i in self._others])
        return [jax.numpy.asarray(array) for array in run(self._given_arrays({i: inputs[i] for i in self._others}))]

    def _given_arrays(self, inputs: dict[int, Any]) -> list[np.ndarray]:
        return [np.asarray(inputs[i], self._dtypes[i]) for i in self._kept if i in inputs]

    def arrays(self, given: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return the outputs as NumPy arrays, by the weights of the first call; that call was another one.

        Args:
            given: the inputs that are not weights.
        """
        if self._engine.name == "xla":
            return [np.array(out) for out in self._run(*given)]  # to be written: DLPack shares nothing else
        return self._run(self._given_arrays(dict(zip(self._others, given, strict=True))))

    def _compare(self, found: Sequence[Any], wanted: Sequence[Any]) -> None:
        for number, (a, b) in enumerate(zip(found, wanted, strict=True)):
            a, b = np.asarray(a), np.asarray(b)
            if not np.issubdtype(b.dtype, np.floating):
                # Whole numbers may be choices between floats that are nearly equal: they are compared as a share.
                apart, most = float(np.mean(a != b)) if b.size else 0.0, 0.02
            else:
                a, b = a.astype(np.float64), b.astype(np.float64)
                same = (a == b) | (np.isnan(a) & np.isnan(b))
                scale = np.max(np.abs(b), initial=1e-30, where=np.isfinite(b))
                apart, most = _largest(np.where(same, 0.0, np.abs(a - b)) / scale), TOLERANCE[self._engine.precision]
            if not apart <= most:
                raise EngineError(
                    self._operation,
                    f"output {number} of {self._engine.name} is {apart:.2g} of its largest number away from XLA's",
                    f"with verify=True the first results are at most {most:g} apart in {self._engine.precision}",
                    'leave the engine out for this graph, or precision="float32"; verify=False looks at nothing',
                )


def _largest(apart: np.ndarray) -> float:
    found = np.max(apart, initial=0.0)
    return float("inf") if np.isnan(found) else float(found)


def onnx_model(
    operation: str,
    exported: Any,
    weights: dict[int, np.ndarray],
    names: Sequence[str] = (),
    outputs: Sequence[str] = (),
) -> Any:
    """Return a program as an `onnx.ModelProto`.

    Args:
        operation: the call, for errors.
        exported: the program.
        weights: the inputs that are constants, by their numbers among all inputs.
        names: names of all inputs; without them they are numbered.
        outputs: likewise of outputs.

    Raises:
        EngineError: an operation has no counterpart.
    """
    module("onnx", operation)
    kept = list(exported.module_kept_var_idx)
    names = names or [f"input_{i}" for i in range(len(exported.in_avals))]
    outputs = outputs or [f"output_{i}" for i in range(len(exported.out_avals))]
    constants = {place: weights[i] for place, i in enumerate(kept) if i in weights}
    try:
        program = parse_program(exported.mlir_module_serialized)
        return onnx.convert(program, constants, [names[i] for i in kept], outputs)
    except onnx.UnsupportedError as error:
        raise EngineError(
            operation,
            f"an operation that engines do not get: {error}",
            "an engine gets a graph whose operations all have a counterpart in ONNX",
            "leave the engine out for this graph, or compute that part in a graph of its own",
        ) from None


def parse_program(program: bytes) -> Any:
    """Return the MLIR module of a serialised program.

    Raises:
        ValueError: it cannot be parsed, or holds operations of unknown dialects.
    """
    context = ir.Context()
    for dialect in (stablehlo, chlo, sdy):
        dialect.register_dialect(context)
    context.emit_error_diagnostics = True  # in the exception instead of on stderr
    with context:
        return stablehlo.deserialize_portable_artifact(context, program)


def _fold_weights(exported: Any, weights: dict[int, Any], count: int) -> Run:
    """Return the program of XLA with its weights as constants."""
    others = [i for i in range(count) if i not in weights]

    @jit_without_mesh
    def run(*given: Any) -> Any:
        inputs: list[Any] = [None] * count
        for i, value in weights.items():
            inputs[i] = value
        for i, value in zip(others, given, strict=True):
            inputs[i] = value
        return exported.call(*inputs)

    return run
