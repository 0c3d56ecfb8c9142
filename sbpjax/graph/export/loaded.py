"""`load_graph`: an exported graph, ready to run without the code of the model.

    graph = sbpjax.load_graph("gpt")
    print(graph)                                  # its inputs, its outputs, its devices
    logits = graph(tokens)

A `LoadedGraph` is called as the graph was, with one difference: it has the one signature that it was exported with.
Its state is tensors by name (`LoadedGraph.state_dict`); a graph that trains goes on training, with the numbers of its
optimizers (`LoadedGraph.numbers`: learning rates and such) as they were at the export until they are set.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.export
import numpy as np

from sbpjax._core.compiler import conversions
from sbpjax._core.engines import Engine, EngineProgram
from sbpjax._core.runtime.lifecycle import at_stage
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.handle.device import default_jax_device, from_jax_device
from sbpjax._core.tensor.handle.device import device as Device
from sbpjax._core.tensor.handle.tensor import wrap_any
from sbpjax._core.tensor.storage.payload import payload
from sbpjax._core.tracing import tree
from sbpjax.errors import ExportError, GraphTypeError, StateDictError, count_text
from sbpjax.sbp import algebra
from sbpjax.sbp.placement import devices_of
from sbpjax.sbp.placement import placement as Placement

from ..config import GraphConfig
from ..program.on_engine import check
from . import file_reader, manifest
from .saved_program import SavedProgram


def load_graph(
    path: str | os.PathLike,
    *,
    placement: Placement | None = None,
    device: str | Device | None = None,
    key: bytes | None = None,
    trust: bool = False,
) -> LoadedGraph:
    """Load an export of `Graph.export`.

    Args:
        path: the directory.
        placement: the placement of a sharded graph, of the hierarchy that it was exported with; by default the first
            devices of the type that it was exported on.
        device: where a local graph runs; by default the default device.
        key: the key that it was exported with: only a graph that was signed with it, and not changed since, is loaded.
            Without it a signature is not looked at: a signed graph is loaded like an unsigned one.
        trust: load a graph whose program brings or calls native code, such as kernels of Pallas, without a signature;
            only for exports of your own or of people you trust.

    Returns:
        A `LoadedGraph`; call it as the graph.

    Raises:
        ExportError: files are missing or damaged, the program does not run on such devices, or it calls native code and
            is neither signed nor trusted.
        SignatureError: with a key: there is no signature, or it is another key's.

    Example:
        >>> graph.export("double", flow.ones(3))
        >>> sbpjax.load_graph("double")(flow.ones(3))
        tensor([2., 2., 2.], dtype=sbpjax.float32)
    """
    return LoadedGraph(Path(path), placement, device, key, trust)


class LoadedGraph:
    """An exported graph.

    Attributes:
        name: the name of the graph that was exported.
        manifest: the content of `manifest.json`.
        placement: where it runs; None for a local graph.
        numbers: the numbers of its optimizers by name, such as ``"optimizer[0].param_groups[0].lr"``; set them to
            change them.
    """

    def __init__(
        self,
        folder: Path,
        placement: Placement | None,
        device: str | Device | None,
        key: bytes | None = None,
        trust: bool = False,
    ) -> None:
        self._operation = f"load_graph({os.fspath(folder)!r})"
        content = manifest.read_manifest_bytes(folder, self._operation)
        if key is not None:
            file_reader.check_signature(folder, file_reader.checked_key(key, self._operation), content, self._operation)
        found = self.manifest = manifest.read(content, self._operation)
        exported = file_reader.program(folder, found, self._operation, vouched=key is not None or trust)
        self.placement, target = _target(found, placement, device, self._operation)
        platform = target.platform if self.placement is None else self.placement.devices.flat[0].platform
        _check_platform(exported, platform, self._operation)
        try:
            self.name: str = found["name"]
            weights = file_reader.weights(folder, found, self._operation)
            state = found["state"]
            self.numbers = {n["name"]: float(n["value"]) for n in state["numbers"]}
            self._names = [t["path"] for t in state["tensors"]]
            self.tensors = [self._tensor(t, weights, target) for t in state["tensors"]]
            captured = [self._tensor(t, weights, target) for t in state["captured"]]
            self._state = _Live(self.tensors, self.numbers)
            self.program = SavedProgram(found, self.placement, self.tensors).program(exported, target, captured)
            self._exported, self._target = exported, target
        except (ExportError, GraphTypeError):
            raise
        except Exception as error:  # the files do not fit each other, in any way
            seen = f"{manifest.MANIFEST} is not as it was written: {type(error).__name__} {error}"
            raise manifest.damaged_error(self._operation, seen) from error
        self._inputs = found["inputs"]["leaves"]
        self._arrays = [(np.dtype(leaf["dtype"]), leaf["shape"]) for leaf in self._inputs if "static" not in leaf]
        self._free = any(d.__class__ is str for leaf in self._inputs for d in leaf.get("shape", ()))

    def _tensor(self, facts: dict, weights: dict[str, np.ndarray], target: Any) -> Tensor:
        array = manifest.restore_array(weights[facts["path"]], np.dtype(facts["dtype"]), facts["stored_as"])
        if self.placement is None or facts["sbp"] is None:
            return wrap_any(jax.device_put(array, target))
        return wrap_any(*conversions.from_logical(array, self.placement, facts["sbp"]))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run one step as the exported graph would.

        Raises:
            GraphTypeError: the arguments are not of the signature that was exported.
        """
        args, kwargs = self._name_arguments(args, kwargs)
        leaves, structure = tree.flatten((args, kwargs))
        self._check_structure(structure)
        tensors, batch = [], None
        for facts, leaf in zip(self._inputs, leaves, strict=True):
            if "static" in facts:
                self._check_static(facts, leaf)
            else:
                batch = self._check_tensor(facts, leaf, batch)
                tensors.append(leaf)
        return self.program.run(self._state, tensors)  # type: ignore[arg-type]

    def on_arrays(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray] | None:
        """Run it on NumPy arrays, for servers: of a small call the making of tensors is more than half.

        An engine has run the graph before, such as that of `enable_constant_weights`. Weights written since then do
        not count.

        Args:
            arrays: of its tensors, in the order of the manifest.

        Returns:
            The tensors of its result, in the order of the manifest; None if there is no engine, or the arrays are not
            of the signature that was exported: a call raises the error.
        """
        run = self.program._compiled
        batch = arrays[0].shape[0] if arrays and arrays[0].ndim else 0
        fit = [(array.dtype, array.shape) for array in arrays] == [
            (dtype, tuple([batch if n.__class__ is str else n for n in shape])) for dtype, shape in self._arrays
        ]
        if fit and batch and isinstance(run, EngineProgram):
            return run.arrays(arrays)
        return None

    # -- checks --------------------------------------------------------------------------------------------------------

    def _name_arguments(self, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        """Return the arguments, those without a name under the names that the graph was exported with."""
        _, (positional, (_, names, _)) = self.manifest["inputs"]["structure"]
        if not args or positional[1] or len(args) + len(kwargs) != len(names):
            return args, kwargs
        named = dict(zip([name for name in names if name not in kwargs], args, strict=True)) | kwargs
        return (), {name: named[name] for name in names if name in named}

    def _check_structure(self, structure: Any) -> None:
        wanted = self.manifest["inputs"]["structure"]
        operation = f"{self.name}(...), loaded"
        found = manifest.structure_json(structure, operation)
        if found != wanted:
            args, named = structure.children
            names = [f"argument {i}" for i in range(len(args.children))] + [f"{key}=" for key in named.keys]
            children = (*args.children, *named.children)
            paths = ", ".join(p for n, c in zip(names, children, strict=True) for p in tree.paths(c, n)) or "none"
            known = ", ".join(leaf["path"] for leaf in self._inputs) or "none"
            raise GraphTypeError(
                operation,
                f"arguments of another structure: {paths}",
                f"an exported graph takes the inputs of its export: {known}",
                f"{self.name}({known})",
            )

    def _check_static(self, facts: dict, leaf: Any) -> None:
        wanted = manifest.static_of(facts)
        # By text as well: NaN is not equal to itself, and was exported as NaN.
        same = type(leaf) is type(wanted) and (leaf == wanted or repr(leaf) == repr(wanted))
        if not same:
            raise GraphTypeError(
                f"{self.name}(...), loaded",
                f"{facts['path']} = {leaf!r}",
                f"a value that is no tensor is part of the program: it was exported with {wanted!r}",
                f"pass {wanted!r}, or export the graph with the other value too",
            )

    def _check_tensor(self, facts: dict, leaf: Any, batch: int | None) -> int | None:
        """Refuse a tensor that is not as exported; return the free size of dim 0."""
        path, sbp = facts["path"], facts["sbp"]
        if not isinstance(leaf, Tensor):
            raise self._signature_error(facts, f"{path} is a {type(leaf).__name__}", f"sbpjax.tensor({path})")
        layout = leaf.layout
        shape = tuple(leaf.shape)
        fits = len(shape) == len(facts["shape"])
        if fits:
            for size, wanted in zip(shape, facts["shape"], strict=True):
                if wanted.__class__ is str:
                    fits = fits and size > 0 and batch in (None, size)
                    batch = size
                else:
                    fits = fits and size == wanted
        dtype = leaf.dtype.name if hasattr(leaf.dtype, "name") else str(leaf.dtype)
        name = np.dtype(payload(leaf).dtype).name
        if not fits or name != facts["dtype"]:
            fix = "bring it to that shape, or export for this one, with dynamic_batch=True for any batch"
            if fits:
                fix = f"{path}.to(sbpjax.{facts['dtype']})"
            raise self._signature_error(facts, f"{path}: {dtype}{list(shape)}", fix)
        if sbp is None:
            if layout is not None:
                raise self._signature_error(facts, f"{path} is global, {layout!r}", f"{path}.to_local()")
            array = payload(leaf)
            if self.placement is None and getattr(array, "committed", False):
                (here,) = array.devices()
                if here != self._target:
                    seen, fix = f"{path} on {here}", f"{path}.to({str(from_jax_device(self._target))!r})"
                    raise self._signature_error(facts, seen, fix)
            return batch
        codes = algebra.parse(sbp, self.placement, leaf.ndim)  # type: ignore[union-attr]
        if layout is None or layout.placement != self.placement or layout.codes != codes:
            layout_text = (
                "" if layout is None else f"({', '.join(map(algebra.name, layout.codes))}) on {layout.placement!r}"
            )
            seen = f"{path} is local" if layout is None else f"{path} in {layout_text}"
            fix = f"{path}.to_global({self.placement!r}, sbp={sbp})"
            raise self._signature_error(facts, seen, fix)
        return batch

    def _signature_error(self, facts: dict, seen: str, fix: str) -> GraphTypeError:
        where = "" if facts["sbp"] is None else f" in ({', '.join(facts['sbp'])}) on {self.placement!r}"
        rule = f"an exported graph has one signature: {facts['path']} is {_facts(facts)}{where}"
        if self._free:
            rule += "; batch is any number from 1 on, and the same for all"
        return GraphTypeError(f"{self.name}(...), loaded", seen, rule, fix)

    # -- engines -------------------------------------------------------------------------------------------------------

    def enable_openvino(
        self, mode: bool = True, *, precision: str = "float32", verify: bool = True, threads: int | None = None
    ) -> LoadedGraph:
        """Run it by OpenVINO, as `GraphConfig.enable_openvino` describes; return this graph."""
        return self._on_engine(mode, Engine("openvino", precision, verify, threads))

    def enable_onnxruntime(self, mode: bool = True, *, verify: bool = True, threads: int | None = None) -> LoadedGraph:
        """Run it by ONNX Runtime, as `GraphConfig.enable_onnxruntime` describes; return this graph."""
        return self._on_engine(mode, Engine("onnxruntime", "float32", verify, threads))

    @at_stage("pre-alpha")
    def enable_tensorrt(self, mode: bool = True, *, precision: str = "float32", verify: bool = True) -> LoadedGraph:
        """Run it by TensorRT, as `GraphConfig.enable_tensorrt` describes; return this graph."""
        return self._on_engine(mode, Engine("tensorrt", precision, verify))

    @at_stage("pre-alpha")
    def enable_iree(self, mode: bool = True, *, verify: bool = True) -> LoadedGraph:
        """Run it by IREE, as `GraphConfig.enable_iree` describes; return this graph."""
        return self._on_engine(mode, Engine("iree", "float32", verify))

    def enable_constant_weights(self, mode: bool = True) -> LoadedGraph:
        """Compile it with its weights as constants, as in `GraphConfig.enable_constant_weights`; return this one."""
        return self._on_engine(mode, Engine("xla", "float32", False))

    def _on_engine(self, mode: bool, engine: Engine) -> LoadedGraph:
        config = GraphConfig()  # checks the options as it does for a graph that is not exported
        config._set_engine(engine.name, mode, engine.precision, engine.verify, engine.threads)
        if config.engine is not None:
            check(self.program, engine)
        self.program.options = replace(self.program.options, engine=config.engine)
        self.program._compiled = None
        return self

    # -- state ---------------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Tensor]:
        """Return the tensors of the state by name: parameters, buffers, optimizer state; they share storage."""
        return dict(zip(self._names, self.tensors, strict=True))

    def load_state_dict(self, state_dict: dict[str, Tensor], strict: bool = True) -> None:
        """Write tensors into the state.

        Args:
            state_dict: values by the names of `state_dict`, of the same shapes.
            strict: raise for missing and unexpected names.

        Raises:
            StateDictError: names or shapes do not fit; nothing is written then.
        """
        known = self.state_dict()
        operation = f"{self.name}.load_state_dict, loaded"
        unknown, missing = [k for k in state_dict if k not in known], [k for k in known if k not in state_dict]
        if strict and (unknown or missing):
            seen = f"unknown names {unknown[:5]}, missing names {missing[:5]}"
            raise StateDictError(operation, seen, "the names are those of state_dict()", "strict=False")
        given = {k: v for k, v in state_dict.items() if k in known}
        for name, value in given.items():
            if tuple(value.shape) != tuple(known[name].shape):
                seen = f"{name}: {tuple(value.shape)}"
                rule = f"{name} is {tuple(known[name].shape)}"
                raise StateDictError(operation, seen, rule, "load the state of the same model")
        for name, value in given.items():
            known[name].copy_(value)

    # -- text ----------------------------------------------------------------------------------------------------------

    @property
    def platforms(self) -> tuple[str, ...]:
        """The kinds of devices that it was exported for."""
        return tuple(self.manifest["program"]["platforms"])

    def stablehlo(self) -> str:
        """Return the text of the program."""
        return self._exported.mlir_module()

    def __repr__(self) -> str:
        where = repr(self.placement) if self.placement is not None else f"{'/'.join(self.platforms)}, one device"
        lines = [f"(LOADED GRAPH:{self.name}:{self.manifest.get('class')}): (", f"  (DEVICES:{where})"]
        for kind, side in (("INPUT", "inputs"), ("OUTPUT", "outputs")):
            lines += [f"  ({kind}:{_line(leaf)})" for leaf in self.manifest[side]["leaves"]]
        for facts in self.manifest["state"]["tensors"]:
            lines.append(f"  ({facts['kind'].upper()}:{_line(facts)})")
        lines += [f"  (NUMBER:{name}:{value!r})" for name, value in self.numbers.items()]
        return "\n".join([*lines, ")"])


class _Live:
    """The part of a state that `Program.run` needs."""

    def __init__(self, tensors: list[Tensor], numbers: dict[str, float]) -> None:
        self.tensors = tensors
        self._numbers = numbers

    def numbers(self) -> list[float]:
        return [float(value) for value in self._numbers.values()]


# -- reading -----------------------------------------------------------------------------------------------------------


def _target(found: dict, placement: Any, device: Any, operation: str) -> tuple[Placement | None, Any]:
    """Return the target of a graph: a placement, or None and a device."""
    recorded = found.get("placement")
    if recorded is None:
        if placement is not None:
            seen, rule = f"placement={placement!r}", "this graph was exported from local tensors: it runs on one device"
            raise ExportError(operation, seen, rule, 'load_graph(path, device="cpu")')
        if device is not None:
            return None, (device if isinstance(device, Device) else Device(device)).jax()
        return None, default_jax_device()
    hierarchy = tuple(recorded["hierarchy"])
    ranks = np.arange(int(np.prod(hierarchy))).reshape(hierarchy).tolist()
    if device is not None:
        seen, rule = f"device={str(device)!r}", f"this graph is sharded over a placement of {_grid(hierarchy)} ranks"
        raise ExportError(operation, seen, rule, f"load_graph(path, placement=placement('cpu', {ranks}))")
    if placement is None:
        have = len(devices_of(recorded["type"]))
        if have < np.prod(hierarchy):
            seen = f"{count_text(have, 'device')} of type {recorded['type']!r} here"
            rule = f"it was exported for {_grid(hierarchy)} ranks, and runs on as many"
            raise ExportError(operation, seen, rule, "export it from a placement of the devices there are")
        return Placement(recorded["type"], ranks, axis_names=recorded.get("axis_names")), None
    if tuple(placement.hierarchy) != hierarchy or not placement.is_present:
        seen = f"a placement of {_grid(placement.hierarchy)} ranks{'' if placement.is_present else ', not here'}"
        rule = f"the plan is part of the program: it was exported for {_grid(hierarchy)} ranks"
        raise ExportError(operation, seen, rule, f"placement=placement({placement.type!r}, {ranks})")
    return placement, None


def _check_platform(exported, platform: str, operation: str) -> None:
    names = {"gpu": "cuda"}
    if names.get(platform, platform) not in exported.platforms:
        raise ExportError(
            operation,
            f"devices of platform {platform!r}",
            f"the program was exported for {list(exported.platforms)}",
            f"graph.export(path, ..., platforms={[*exported.platforms, names.get(platform, platform)]})",
        )


def _grid(hierarchy) -> str:
    return " × ".join(map(str, hierarchy))


def _facts(facts: dict) -> str:
    return f"{facts['dtype']}[{', '.join(map(str, facts['shape']))}]"


def _line(facts: dict) -> str:
    if "static" in facts:
        return f"{facts['path']}:{manifest.static_of(facts)!r}"
    sbp = "" if facts["sbp"] is None else f", sbp=({', '.join(facts['sbp'])})"
    return f"{facts['path']}:{_facts(facts)}{sbp}"
