"""Triton Python backend: runs an exported graph, one process per instance.

Arrays go through DLPack both ways. The backend of Triton 2.51 was built against NumPy 1; with NumPy 2 its ``as_numpy``
returns other numbers than were sent, without an error, and its ``Tensor`` takes none over.
"""

from __future__ import annotations

import ctypes
import json
from typing import Any

import numpy as np

import sbpjax as flow

from .batches import Batches

_set_destructor = ctypes.pythonapi.PyCapsule_SetDestructor
_set_destructor.argtypes = [ctypes.py_object, ctypes.c_void_p]
_set_destructor.restype = ctypes.c_int


class _Capsule:
    """DLPack capsule with the two methods that `numpy.from_dlpack` and Triton expect."""

    def __init__(self, capsule: Any):
        self.capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0  # memory of the CPU


def array_of(tensor: Any) -> np.ndarray:
    """Return the values of a tensor of Triton's backend."""
    holder = _Capsule(tensor.to_dlpack())
    array = np.from_dlpack(holder)
    # Its destructor looks for a name that the consumer has changed by now, and complains in the log at each call.
    _set_destructor(holder.capsule, None)
    return array


def tensor_of(utils: Any, name: str, array: np.ndarray) -> Any:
    """Return an array as a tensor of Triton's backend."""
    array = np.ascontiguousarray(array)
    if array.dtype == np.bool_:
        # NumPy 2 gives bools by a code that this backend does not know.
        return utils.Tensor.from_dlpack(name, _Capsule(array.view(np.uint8).__dlpack__()))
    holder = _Capsule(array.__dlpack__())
    tensor = utils.Tensor.from_dlpack(name, holder)
    _set_destructor(holder.capsule, None)
    return tensor


def _is_cancelled(request: Any) -> bool:
    asks = getattr(request, "is_cancelled", None)  # Triton has it since 23.10
    return asks is not None and asks()


class TritonModel:
    """A model of Triton's Python backend that runs an exported graph.

    Args:
        utils: Triton's module ``triton_python_backend_utils``.
        folder: the directory of the export.
        engine: ``"xla"``, ``"openvino"`` or ``"onnxruntime"``.
    """

    def __init__(self, utils: Any, folder: str, engine: str):
        self._utils, self._folder, self._engine = utils, folder, engine

    def initialize(self, args: dict[str, str]) -> None:
        """Load the graph, and compile the programs for requests."""
        config = json.loads(args["model_config"])
        self._inputs = [port["name"] for port in config["input"]]
        self._outputs = [port["name"] for port in config["output"]]
        graph = flow.load_graph(self._folder)
        switch = {"xla": "enable_constant_weights"}.get(self._engine, f"enable_{self._engine}")
        getattr(graph, switch)(True)
        self._batches = Batches(graph, int(config.get("max_batch_size", 0)))
        self._batches.warm()

    def execute(self, requests: list) -> list:
        """Execute the requests of a batch; an invalid request gets an error of its own."""
        given, answers = [], [None] * len(requests)
        for place, request in enumerate(requests):
            try:
                if _is_cancelled(request):  # its client disconnected: the others need not wait for it
                    raise ValueError("the request was cancelled")
                given.append((place, [array_of(self._input(request, name)) for name in self._inputs]))
            # Whatever is wrong with a request must not end the process.
            except Exception as error:
                answers[place] = self._error_response(error)
        try:
            found = self._batches([arrays for _, arrays in given]) if given else []
        except Exception:
            found = [self._run_single(arrays) for _, arrays in given]
        for (place, _), outs in zip(given, found, strict=True):
            answers[place] = outs if not isinstance(outs, list) else self._answer(outs)  # type: ignore[call-overload]
        return answers

    def _input(self, request: Any, name: str) -> Any:
        tensor = self._utils.get_input_tensor_by_name(request, name)
        if tensor is None:
            raise ValueError(f"no input {name!r}")
        return tensor

    def _run_single(self, arrays: list) -> Any:
        """Return the outputs of one request run by itself, so that only the invalid one gets an error."""
        try:
            return self._batches([arrays])[0]
        except Exception as error:
            return self._error_response(error)

    def _answer(self, outs: list) -> Any:
        tensors = [tensor_of(self._utils, name, out) for name, out in zip(self._outputs, outs, strict=True)]
        return self._utils.InferenceResponse(output_tensors=tensors)

    def _error_response(self, error: Exception) -> Any:
        text = self._utils.TritonError(f"{type(error).__name__}: {error}")
        return self._utils.InferenceResponse(output_tensors=[], error=text)
