"""`Graph.export`: writes a compiled program of a graph to files, to run without the model's code.

    graph.export("gpt", tokens)                        # a directory
    graph = sbpjax.load_graph("gpt")                   # elsewhere, without the classes of the model
    logits = graph(tokens)

`program.jax_export` is the serialised form of `jax.export`: StableHLO with its supported versions and devices.
`weights.safetensors` holds the state under the names that users know, each tensor whole, however the program keeps it;
`manifest.json` lists inputs and outputs, and which inputs of the program are stacks of which layers' tensors
(`sbpjax.graph.export.manifest`). Next to them are copies of the program in other formats
(`sbpjax.graph.export.other_forms`). A graph with optimizers is exported with their state, and its copy goes on
training.

A local graph runs on any one device of the exported platforms. A sharded one is exported as it was planned, with its
collectives, and runs on any placement of the same hierarchy. A pipelined one becomes one program for one device.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import jax.export
import numpy as np
from safetensors.numpy import save_file

from sbpjax._core.compiler import conversions
from sbpjax._core.runtime.ambient_mesh import hide_mesh
from sbpjax._core.runtime.user_line import warn
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.handle.tensor import wrap_any
from sbpjax._core.tensor.storage.payload import payload
from sbpjax._core.tracing import tree
from sbpjax._core.tracing.capture import State
from sbpjax._core.tracing.escaped_tensors import MOST_ATTEMPTS, Recaptured
from sbpjax._core.tracing.signature import Call, as_tensor
from sbpjax.errors import ExportError, SbpjaxError, message
from sbpjax.optim.optimizer import Item
from sbpjax.sbp import algebra
from sbpjax.sbp.abstract import Abstract

from ..fitting import owners_of, prepare_program
from ..program.build_program import build_program
from ..program.program import Options, Program
from ..step import GraphStep
from . import file_reader, manifest, other_forms

PLATFORMS = ("cpu", "cuda", "rocm", "tpu")


def export(
    graph: Any,
    path: str | os.PathLike,
    args: tuple,
    kwargs: dict,
    platforms: Sequence[str] | None,
    dynamic_batch: bool,
    key: bytes | None = None,
    onnx: bool = False,
) -> Path:
    """Write a graph as files; see `Graph.export`."""
    operation = f"{graph.name}.export({os.fspath(path)!r}, ...)"
    key = None if key is None else file_reader.checked_key(key, operation)
    folder = Path(path)
    _check_target(operation, folder)
    names = _checked_platforms(operation, platforms)
    if not (args or kwargs):
        args, kwargs = _last_arguments(graph, operation)
    leaves, structure = tree.flatten((args, kwargs))
    args, kwargs = tree.unflatten(structure, map(as_tensor, leaves))
    if dynamic_batch:
        state, call, program = _trace_dynamic_batch(graph, operation, args, kwargs)
    else:
        state, program, call = prepare_program(graph, args, kwargs)
    _check_data(operation, state)
    _warn_of_training(graph, operation, program)
    if program.pipeline is not None:
        program = program.sequential()
    if program.host_inputs:
        raise ExportError(
            operation,
            "lookups in a table by key",
            "an export is a program alone, and which row a key has is found on the host before each call",
            "export the model after the table, with its vectors as an argument",
        )
    content: dict[str, Any] = {
        "format": manifest.FORMAT,
        "format_version": manifest.VERSION,
        "name": graph.name,
        "class": type(graph).__name__,
        "packages": manifest.packages(),
        "placement": _placement_json(program),
        "inputs": _inputs_json(graph, call, program, operation),
        "outputs": _outputs_json(program, operation),
    }
    content["state"], weights = _state_json(graph, state, program)
    exported = _export_program(operation, program, names)
    blob = bytes(exported.serialize())
    content["program"] = {
        "file": manifest.PROGRAM,
        "sha256": hashlib.sha256(blob).hexdigest(),
        "platforms": list(exported.platforms),
        "devices": exported.nr_devices,
        "calling_convention_version": exported.calling_convention_version,
        "random": program.is_random,
    }
    others: dict[str, Any] = dict(other_forms.programs(exported))
    content["program"]["kept"] = [int(i) for i in exported.module_kept_var_idx]
    if onnx:
        others[other_forms.ONNX] = other_forms.model(operation, program, exported, content, weights)
    content["weights"] = {"file": manifest.WEIGHTS, "bytes": sum(a.nbytes for a in weights.values())}
    _write(folder, content, blob, weights, key, others)
    return folder


# -- the program -------------------------------------------------------------------------------------------------------


@hide_mesh
def _export_program(operation: str, program: Any, platforms: tuple[str, ...] | None):
    structs = program.structs
    # Committed arrays name a device; the export runs on any.
    if program.placement is None:
        structs = [jax.ShapeDtypeStruct(s.shape, s.dtype, weak_type=s.weak_type) for s in structs]
        platforms = platforms or (jax.default_backend(),)
    try:
        call: Any = program.call
        return jax.export.export(call, platforms=platforms)(*structs)
    # The error of jax.export for anything without a stable form: callbacks, unknown custom calls, kernels.
    except (ValueError, NotImplementedError, TypeError) as error:
        raise ExportError(
            operation,
            f"jax.export: {str(error).strip().splitlines()[0]}",
            "an export consists of operations with a stable meaning: no call back into Python, no kernel that only "
            "this version of a library has",
            "leave that op out of the exported graph, or export for other platforms",
        ) from error


def _last_arguments(graph: Any, operation: str) -> tuple[tuple, dict]:
    """Return the arguments of a graph's last call; none where `build` takes none."""
    if graph._g.latest is not None:
        return graph.program.arguments
    try:
        inspect.signature(graph.build).bind()
    except TypeError:
        seen = "no arguments, and a graph that was not called"
        rule = "a program is made for arguments: those of the last call, or those given"
        raise ExportError(
            operation, seen, rule, "give those of build after the path, or call the graph first"
        ) from None
    return (), {}


def _trace_dynamic_batch(graph: Any, operation: str, args: tuple, kwargs: dict):
    """Trace a graph with a free number of rows: dim 0 of every tensor argument."""
    state, call = State(owners_of(graph)), Call(args, kwargs)
    if any(layout is not None for layout in (*state.layouts(), *(t.layout for t in call.tensors))):
        seen, rule = "a sharded graph", "a plan is made for given sizes; the batch can be free on one device only"
        fix = "export a graph of copy.deepcopy(model).to_local(); or without dynamic_batch, once per batch size"
        raise ExportError(operation, seen, rule, fix)
    sizes = sorted({t.shape[0] for t in call.tensors if t.ndim})
    if len(sizes) != 1 or any(t.ndim == 0 for t in call.tensors):
        seen = ", ".join(str(tuple(t.shape)) for t in call.tensors) or "no tensor"
        rule = "dim 0 of every tensor argument is the batch, of one size"
        raise ExportError(operation, f"arguments of shapes {seen}", rule, "give each argument its rows on dim 0")
    given = call
    (rows,) = jax.export.symbolic_shape("batch")
    free = [wrap_any(Abstract((rows, *t.shape[1:]), payload(t).dtype)) for t in call.tensors]
    args, kwargs = call.rebuilt([t.requires_grad_() if o.requires_grad else t for t, o in zip(free, call.tensors)])
    call = Call(args, kwargs)
    # The kept values of a block are chosen by its size.
    before, graph.config.block_scan = graph.config.block_scan, False
    try:
        for attempt in range(MOST_ATTEMPTS):
            state = State(owners_of(graph), attempt)
            step = GraphStep(graph, state, {})
            with contextlib.suppress(Recaptured):
                return state, call, build_program(step, state, call, Options(), f"{graph.name}.build")
        raise AssertionError("the last attempt makes a program")
    except Exception as error:
        # Errors at any size are raised as they are.
        fresh = State(owners_of(graph))
        program = build_program(GraphStep(graph, fresh, {}), fresh, given, Options(), f"{graph.name}.build")
        _warn_of_training(graph, operation, program)
        first_line = str(error).strip().partition("\n")[0]
        root_cause: BaseException = error
        while (cause := root_cause.__cause__ or root_cause.__context__) is not None:
            root_cause = cause
        reason = "" if root_cause is error else f": {str(root_cause).strip().partition(chr(10))[0]}"
        raise ExportError(
            operation,
            f"build needs the number of rows: {first_line}{reason}",
            "with dynamic_batch=True the size of dim 0 is a symbol: ops cannot loop over it, split it into given "
            "parts, or choose by it",
            "export without dynamic_batch, once per batch size",
        ) from (None if isinstance(error, SbpjaxError) else error)
    finally:
        graph.config.block_scan = before


# -- the manifest ------------------------------------------------------------------------------------------------------


def _inputs_json(graph: Any, call: Call, program: Program, operation: str) -> dict:
    places = set(call.places)
    found = []
    for i, (path, leaf) in enumerate(zip(call.paths(graph.build), call.leaves, strict=True)):
        if i in places:
            layout = None if program.placement is None else leaf.layout
            found.append(manifest.tensor_json(path, leaf.shape, payload(leaf).dtype, layout))
        else:
            found.append(manifest.static_json(leaf, path, operation))
    return {"structure": manifest.structure_json(call.structure, operation), "leaves": found}


def _outputs_json(program: Program, operation: str) -> dict:
    skip, outputs = len(program.written), program.outputs
    produced = iter(zip(program.jaxpr.out_avals[skip:], program.out_layouts[skip:], outputs.are_global, strict=True))
    found, (structure, leaves) = [], outputs.results
    for path, static in zip(tree.paths(structure, "output"), leaves, strict=True):
        if static is not None:
            found.append(manifest.static_json(static[0], path, operation))
            continue
        aval, layout, is_global = next(produced)
        found.append({**manifest.tensor_json(path, aval.shape, aval.dtype, layout), "global": bool(is_global)})
    return {"structure": manifest.structure_json(structure, operation), "leaves": found}


def _placement_json(program: Program) -> dict | None:
    place = program.placement
    names = {} if place is None or place.named is None else {"axis_names": list(place.axis_names)}
    return None if place is None else {"type": place.type, "hierarchy": list(place.hierarchy), **names}


def _state_json(graph: Any, state: State, program: Program) -> tuple[dict, dict[str, np.ndarray]]:
    """Return the manifest's part about the state, and the arrays of the weights file."""
    kinds = _kinds(graph)
    weights: dict[str, np.ndarray] = {}
    tensors, captured = [], []
    for name, t in zip(_unique(state.names), state.tensors, strict=True):
        tensors.append({**_store_tensor(name, t, program, weights), "kind": kinds.get(id(t), "tensor")})
    for i, t in enumerate(program.captured):
        captured.append(_store_tensor(f"captured[{i}]", t, program, weights))
    written = set(program.written)
    inputs = [
        {
            "tensors": list(slot.places),
            "stacked": len(slot.places) > 1,
            "sbp": None if slot.layout is None else [algebra.name(c) for c in slot.layout.codes],
            "own": slot.own,
            "written": i in written,
        }
        for i, slot in enumerate(program.slots)
    ]
    numbers = [
        {"name": name, "value": repr(value)} for name, value in zip(_number_names(graph, state), state.numbers())
    ]
    order = list(program.written)
    return {"tensors": tensors, "captured": captured, "inputs": inputs, "order": order, "numbers": numbers}, weights


def _store_tensor(name: str, t: Tensor, program: Program, weights: dict) -> dict:
    array = payload(t)
    whole = array if t.layout is None else conversions.to_logical(array, t.layout)
    weights[name], stored_as = manifest.storable(np.asarray(whole))
    found = manifest.tensor_json(name, whole.shape, whole.dtype, None if program.placement is None else t.layout)
    return {**found, "stored_as": stored_as}


def _kinds(graph: Any) -> dict[int, str]:
    found: dict[int, str] = {}
    for block in graph._g.blocks.values():
        found.update({id(t): "buffer" for t in block.buffers()})
        found.update({id(t): "parameter" for t in block.parameters()})
    for entry in graph._g.optimizers:
        found.update({id(t): "optimizer" for t in entry.optimizer.state_tensors()})
    return found


def _number_names(graph: Any, state: State) -> list[str]:
    starts = {
        id(group): f"optimizer[{i}].param_groups[{j}]"
        for i, entry in enumerate(graph._g.optimizers)
        for j, group in enumerate(entry.optimizer.param_groups)
    }
    names = []
    for holder, key in state.options:
        if isinstance(holder, Item):  # one number of a tuple, such as Adam's betas
            names.append(f"{starts[id(holder._group)]}.{holder._name}[{key}]")
        else:
            names.append(f"{starts[id(holder)]}.{key}")
    return _unique(names)


def _unique(names: list[str]) -> list[str]:
    seen: dict[str, int] = {}
    found = []
    for name in names:
        count = seen[name] = seen.get(name, 0) + 1
        found.append(name if count == 1 else f"{name}#{count}")
    return found


# -- files -------------------------------------------------------------------------------------------------------------


def _write(
    folder: Path, content: dict, blob: bytes, weights: dict[str, np.ndarray], key: bytes | None, others: dict[str, Any]
) -> None:
    """Write the files next to the target and move them there, so that a failure leaves the old files."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        (made / manifest.PROGRAM).write_bytes(blob)
        save_file(weights, made / manifest.WEIGHTS, metadata={"format": manifest.FORMAT})
        with open(made / manifest.WEIGHTS, "rb") as file:
            content["weights"]["sha256"] = hashlib.file_digest(file, "sha256").hexdigest()
        if other_forms.ONNX in others:
            others[other_forms.ONNX] = other_forms.externalize_weights(
                others[other_forms.ONNX], made / manifest.WEIGHTS
            )
        for name, form in others.items():
            (made / name).write_bytes(form)
        content["other_forms"] = {name: hashlib.sha256(form).hexdigest() for name, form in others.items()}
        text = manifest.encode_manifest(content)
        (made / manifest.MANIFEST).write_bytes(text)
        if key is not None:
            (made / manifest.SIGNATURE).write_bytes(file_reader.signature(key, text))
        # Two renames, since `os.replace` does not replace a directory that has files; the old one is removed only when
        # the new one is in place.
        if folder.exists():
            old = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
            os.replace(folder, old / "old")
            os.replace(made, folder)
            shutil.rmtree(old)
        else:
            os.replace(made, folder)
        # `mkdtemp` makes it readable by its owner alone.
        os.chmod(folder, 0o755)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _check_target(operation: str, folder: Path) -> None:
    if not folder.exists():
        return
    rule = "an export is a directory of its own; an older export there is replaced, anything else is kept"
    if not folder.is_dir():
        raise ExportError(operation, "a file of that name", rule, "give the name of a new directory")
    others = sorted({p.name for p in folder.iterdir()} - set(manifest.FILES))
    if others:
        raise ExportError(
            operation, f"a directory with {', '.join(others[:5])}", rule, "give the name of a new directory"
        )


def _checked_platforms(operation: str, platforms: Sequence[str] | None) -> tuple[str, ...] | None:
    if platforms is None:
        return None
    names = (platforms,) if isinstance(platforms, str) else tuple(platforms)
    names = tuple("cuda" if name == "gpu" else name for name in names)
    wrong = [name for name in names if name not in PLATFORMS]
    if wrong or not names:
        seen = f"platforms={list(names)}"
        raise ExportError(operation, seen, f"some of {list(PLATFORMS)}", 'platforms=["cpu", "cuda", "tpu"]')
    return names


def _warn_of_training(graph: Any, operation: str, program: Any) -> None:
    """Warn if a graph exported for inference drops values at random, or follows each batch."""
    modules = [m for block in graph._g.blocks.values() for m in block.modules()]
    if graph._g.optimizers or not any(m.training for m in modules) or not (program.is_random or program.written):
        return
    does = "draws random numbers" if program.is_random else "changes its buffers with each call"
    rule = "a model that answers is exported in evaluation mode"
    warn(message(operation, f"a model in training mode, which {does}", rule, "model.eval() first"))


def _check_data(operation: str, state: State) -> None:
    """Refuse state without data."""
    for name, t in zip(state.names, state.tensors, strict=True):
        if payload(t).__class__ is Abstract:
            raise ExportError(
                operation,
                f"{name} is abstract: it has a shape and no elements",
                "the weights are part of an export",
                "make the model on devices of this machine, outside sbpjax.abstract()",
            )
