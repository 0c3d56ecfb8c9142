"""Other formats of an exported program, besides `jax.export`'s own.

    program.mlir      StableHLO as text, to read
    program.mlirbc    StableHLO's portable artifact, for any consumer of StableHLO
    program.hlo.pb    XLA's own message, for a client of XLA in C++; only of a program whose sizes are all known,
                      exported for the kind of device that it is exported on
    model.onnx        an ONNX model, for OpenVINO, ONNX Runtime and TensorRT; its weights are those of the weights file

They are the same program: the inputs of the first three are those of the program that a call uses (``program.kept`` in
the manifest lists them), the inputs of the model are the arguments.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import jax
import numpy as np

from sbpjax._core.engines import Engine, onnx_model
from sbpjax._core.runtime.ambient_mesh import jit_without_mesh
from sbpjax.errors import ExportError

from ..program.on_engine import check, weights_of
from ..program.program import Program
from . import manifest

TEXT, ARTIFACT, HLO, ONNX = "program.mlir", "program.mlirbc", "program.hlo.pb", "model.onnx"
_INSIDE = 1024  # bytes: smaller weights are kept in the model, where engines look at them when they convert it


def programs(exported: Any) -> dict[str, bytes]:
    """Return the files of a program, by name."""
    found = {TEXT: exported.mlir_module().encode(), ARTIFACT: exported.mlir_module_serialized}
    here = {"gpu": "cuda"}.get(jax.default_backend(), jax.default_backend()) in exported.platforms
    if here and exported.nr_devices == 1 and not exported.uses_global_constants:
        structs = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in exported.in_avals]
        hlo: Any = jit_without_mesh(exported.call).lower(*structs).compiler_ir("hlo")
        found[HLO] = hlo.as_serialized_hlo_module_proto()
    return found


def model(operation: str, program: Program, exported: Any, content: dict, weights: dict[str, np.ndarray]) -> Any:
    """Return the ONNX model of an export, with its weights inside.

    Raises:
        ExportError: layers are stacked.
        EngineError: the program does more than compute, or has an operation without counterpart.
    """
    check(program, Engine("onnxruntime"))
    state = content["state"]
    if any(slot["stacked"] for slot in state["inputs"]):
        raise ExportError(
            operation,
            "a program that loops over stacks of its layers' weights",
            "a model in ONNX has each weight under its own name",
            "graph.config.enable_block_scan(False)",
        )
    count = len(program.structs)
    names = [f"input_{i}" for i in range(count)]
    constants: dict[int, np.ndarray] = {0: np.zeros(2, np.int64)}
    for place, slot in enumerate(state["inputs"]):
        names[1 + place] = state["tensors"][slot["tensors"][0]]["path"]
    for place, facts in enumerate(state["captured"]):
        names[count - len(state["captured"]) + place] = facts["path"]
    facts_of = {facts["path"]: facts for facts in (*state["tensors"], *state["captured"])}
    for i in weights_of(program)[1:]:
        facts = facts_of[names[i]]
        constants[i] = manifest.restore_array(weights[names[i]], np.dtype(facts["dtype"]), facts["stored_as"])
    arguments = [leaf["path"] for leaf in content["inputs"]["leaves"] if "static" not in leaf]
    first = 1 + len(program.slots) + len(program.number_names)
    names[first : first + len(arguments)] = arguments
    outputs = [leaf["path"] for leaf in content["outputs"]["leaves"] if "static" not in leaf]
    return onnx_model(operation, exported, constants, names, outputs)


def externalize_weights(proto: Any, file: Path) -> bytes:
    """Return a model whose large weights are those of a safetensors file beside it."""
    with open(file, "rb") as opened:
        (length,) = struct.unpack("<Q", opened.read(8))
        header = json.loads(opened.read(length))
    for tensor in proto.graph.initializer:
        known = header.get(tensor.name)
        if known is None:
            continue
        begin, end = known["data_offsets"]
        if end - begin < _INSIDE or end - begin != len(tensor.raw_data):
            continue
        tensor.ClearField("raw_data")
        tensor.data_location = type(tensor).EXTERNAL
        for key, value in (("location", file.name), ("offset", 8 + length + begin), ("length", end - begin)):
            tensor.external_data.add(key=key, value=str(value))
    return proto.SerializeToString(deterministic=True)
