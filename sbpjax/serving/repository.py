"""Model repository in Triton's layout: models, versions, inputs, outputs and configuration.

    models/
      classifier/
        1/model/manifest.json, program.jax_export, weights.safetensors     written by graph.export
        config.pbtxt                                                       optional
      gpt/ …

Names, types and sizes come from the manifest. A graph that was exported with ``dynamic_batch=True`` is served in
dynamic batches. A ``config.pbtxt`` is kept; missing entries for inputs, outputs and the batch are added. Models are
read from inside the folder only: a link that leads out of it is rejected.
"""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sbpjax.errors import ExportError, ServingError
from sbpjax.graph.export import manifest

ENGINES = ("xla", "openvino", "onnxruntime")
FOLDER = "model"
TYPES = {
    "bool": "BOOL", "uint8": "UINT8", "uint16": "UINT16", "uint32": "UINT32", "uint64": "UINT64", "int8": "INT8",
    "int16": "INT16", "int32": "INT32", "int64": "INT64", "float16": "FP16", "float32": "FP32", "float64": "FP64",
}  # fmt: skip
_NAME = re.compile(r"[A-Za-z0-9_.-]+")


@dataclass(frozen=True)
class TensorPort:
    """Input or output, as clients see it.

    Attributes:
        name: its name; letters, digits and underscores of that in the manifest.
        dtype: as NumPy calls it.
        dims: its sizes, without those of the batch; -1 is free.
    """

    name: str
    dtype: str
    dims: tuple[int, ...]


@dataclass(frozen=True)
class Model:
    """Model of a repository.

    Attributes:
        name: the name of its folder.
        folder: the folder.
        versions: its versions, rising.
        inputs: the inputs of the newest version.
        outputs: its outputs.
        max_batch: the largest batch; 0 if the batch has one size, which then belongs to the dims.
        given: the contents of its config.pbtxt.
        options: of the repository, for entries missing in the file.
    """

    name: str
    folder: Path
    versions: tuple[int, ...]
    inputs: tuple[TensorPort, ...]
    outputs: tuple[TensorPort, ...]
    max_batch: int
    given: str = ""
    options: dict[str, Any] = field(default_factory=dict)

    def export(self, version: int) -> Path:
        """Return the directory that was exported."""
        return self.folder / str(version) / FOLDER

    @property
    def engine(self) -> str:
        """Return its engine: the parameter ``engine`` of its config.pbtxt, or the repository's."""
        found = re.search(r'key\s*:\s*"engine"\s*,?\s*value\s*:?\s*\{\s*string_value\s*:\s*"([^"]*)"', self.given)
        return found.group(1) if found else self.options.get("engine", "xla")

    def config(self) -> str:
        """Return its configuration for Triton, as text."""
        lines = [self.given.rstrip()] if self.given.strip() else []
        entries = re.sub(r"#[^\n]*", "", self.given)

        def has_key(key: str) -> bool:
            return re.search(rf"(?m)^\s*{key}\s*[:\[{{]", entries) is not None

        if not has_key("name"):
            lines.append(f'name: "{self.name}"')
        if not has_key("backend"):
            lines.append('backend: "python"')
        if not has_key("max_batch_size"):
            lines.append(f"max_batch_size: {self.max_batch}")
        for key, ports in (("input", self.inputs), ("output", self.outputs)):
            if not has_key(key):
                lines += [_port(key, port) for port in ports]
        if self.max_batch and not has_key("dynamic_batching"):
            lines.append(_batching(self.options))
        return "\n".join(lines) + "\n"


def _port(key: str, port: TensorPort) -> str:
    dims = ", ".join(map(str, port.dims)) if port.dims else "1"
    shape = "" if port.dims else " reshape: { shape: [ ] }"
    return f'{key} [ {{ name: "{port.name}" data_type: TYPE_{TYPES[port.dtype]} dims: [ {dims} ]{shape} }} ]'


def _batching(options: dict[str, Any]) -> str:
    microseconds = int(options.get("timeout_s", 60.0) * 1e6)
    return (
        f"dynamic_batching {{ max_queue_delay_microseconds: {options.get('queue_delay_us', 500)} "
        f"default_queue_policy {{ max_queue_size: {options.get('max_queue', 1024)} timeout_action: REJECT "
        f"default_timeout_microseconds: {microseconds} }} }}"
    )


class Repository:
    """Models of a folder.

    Args:
        path: the folder.
        engine: the engine of models whose configuration names none, one of `ENGINES`.
        max_batch: the largest batch of models with a free one.
        queue_delay_us: how long a request waits for others, in microseconds.
        max_queue: the maximum number of waiting requests of a model; further ones are rejected.
        timeout_s: how long a request may wait, in seconds.
        max_model_mb: the most that the files of one version take, in MiB; None for no limit. A served model takes up
            to three times as much memory: its weights as loaded, as constants, and packed.

    Raises:
        ServingError: there is no model, or one of them cannot be served; the text names the model and the reason.
    """

    def __init__(
        self,
        path: str | os.PathLike,
        *,
        engine: str = "xla",
        max_batch: int = 16,
        queue_delay_us: int = 500,
        max_queue: int = 1024,
        timeout_s: float = 60.0,
        max_model_mb: int | None = None,
    ):
        self.path = Path(path)
        self._operation = f"serving {os.fspath(path)!r}"
        if engine not in ENGINES:
            raise ServingError(self._operation, f"engine={engine!r}", f"one of {', '.join(ENGINES)}", 'engine="xla"')
        if max_batch < 1 or max_queue < 1 or queue_delay_us < 0 or timeout_s <= 0:
            seen = (
                f"max_batch={max_batch}, max_queue={max_queue}, queue_delay_us={queue_delay_us}, timeout_s={timeout_s}"
            )
            raise ServingError(self._operation, seen, "a batch, a queue and a time-out are positive", "leave them out")
        if not self.path.is_dir():
            rule = "a repository is a folder of models, <model>/<version>/model"
            raise ServingError(self._operation, "no such folder", rule, f"graph.export('{self.path}/name/1/model', x)")
        self._root, self._max_model_mb = self.path.resolve(), max_model_mb
        self._options = {
            "engine": engine,
            "max_batch": max_batch,
            "queue_delay_us": queue_delay_us,
            "max_queue": max_queue,
            "timeout_s": timeout_s,
        }
        folders = sorted(p for p in self.path.iterdir() if p.is_dir() and not p.name.startswith("."))
        self.models = [self._model(folder) for folder in folders]
        if not self.models:
            rule = "a repository has a folder for each model"
            raise ServingError(
                self._operation, "a folder without models", rule, f"graph.export('{self.path}/name/1/model')"
            )

    def _model(self, folder: Path) -> Model:
        name = folder.name
        if not _NAME.fullmatch(name):
            rule = "a model's name has letters, digits, dots, dashes and underscores"
            raise ServingError(self._operation, f"a folder {name!r}", rule, "rename the folder")
        versions = sorted(int(p.name) for p in folder.iterdir() if p.is_dir() and p.name.isdigit() and int(p.name) > 0)
        if not versions:
            rule = "a model has a folder for each version, named by a number from 1"
            raise ServingError(
                self._operation, f"{name} without versions", rule, f"graph.export('{folder}/1/model', x)"
            )
        for version in versions:
            self._check_size(folder / str(version))
        content = [self._manifest(folder, version) for version in versions][-1]
        operation = f"{self._operation}: {name}"
        if content.get("placement") is not None:
            rule = "a served graph runs on one device"
            raise ServingError(operation, "a sharded graph", rule, "export a graph of local tensors")
        if any(slot.get("written") for slot in content["state"]["inputs"]):
            rule = "a served graph only computes: requests must not see each other"
            raise ServingError(
                operation, "a graph that writes its state", rule, "export a graph without optimizer, of model.eval()"
            )
        inputs, free = _ports(content["inputs"]["leaves"], "input", operation)
        outputs, _ = _ports(content["outputs"]["leaves"], "output", operation)
        config = folder / "config.pbtxt"
        given = ""
        if config.exists():
            self._inside(config)
            given = _read_config(config, operation)
        model = Model(
            name,
            folder.resolve(),
            tuple(versions),
            inputs,
            outputs,
            self._options["max_batch"] if free else 0,
            given,
            self._options,
        )
        if model.engine not in ENGINES:
            seen = f"the parameter engine={model.engine!r} in config.pbtxt"
            raise ServingError(operation, seen, f"one of {', '.join(ENGINES)}", 'string_value: "openvino"')
        return model

    def _manifest(self, folder: Path, version: int) -> dict:
        path = folder / str(version) / FOLDER / "manifest.json"
        operation = f"{self._operation}: {folder.name}, version {version}"
        if not path.is_file():
            rule = f"a version has a folder {FOLDER!r} that graph.export wrote"
            raise ServingError(
                operation, f"no {path.relative_to(self.path)}", rule, f"graph.export('{path.parent}', x)"
            )
        for file in (path, path.parent):
            self._inside(file)
        try:
            return manifest.read(path.read_bytes(), operation)
        except (OSError, ExportError) as error:
            seen = str(error).splitlines()[min(1, str(error).count("\n"))].strip().removeprefix("seen: ")
            rule = "the files of an export are written together"
            raise ServingError(operation, f"a damaged manifest.json: {seen}", rule, "export again") from None

    def _check_size(self, version: Path) -> None:
        size = sum(file.stat().st_size for file in (version / FOLDER).glob("*") if file.is_file()) / 2**20
        if self._max_model_mb is not None and size > self._max_model_mb:
            operation = f"{self._operation}: {version.parent.name}, version {version.name}"
            rule = f"a model takes at most {self._max_model_mb} MiB here"
            raise ServingError(operation, f"files of {size:.0f} MiB", rule, f"--max-model-mb {math.ceil(size)}")

    def _inside(self, path: Path) -> None:
        if not path.resolve().is_relative_to(self._root):
            rule = "models are read from inside the repository only"
            seen = f"{path.relative_to(self.path)} leads to {path.resolve()}"
            raise ServingError(self._operation, seen, rule, "copy the files into the repository")


def _read_config(path: Path, operation: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        rule = "config.pbtxt is a file of text in UTF-8"
        raise ServingError(operation, f"config.pbtxt: {error}", rule, "write it anew") from None


def _ports(leaves: list[dict], kind: str, operation: str) -> tuple[tuple[TensorPort, ...], bool]:
    """Return the tensors of one side, and whether dim 0 of all is free."""
    found, names, free = [], set(), True
    for leaf in leaves:
        if "static" in leaf:
            continue
        name = re.sub(r"\W+", "_", leaf["path"]).strip("_") or kind
        while name in names:
            name += "_"
        names.add(name)
        if leaf["dtype"] not in TYPES:
            rule = f"types of the protocol: {', '.join(TYPES)}"
            raise ServingError(
                operation, f"{kind} {name} of {leaf['dtype']}", rule, f"cast it in build: {name}.float()"
            )
        free = free and bool(leaf["shape"]) and isinstance(leaf["shape"][0], str)
        found.append((name, leaf))
    ports = [
        TensorPort(
            name, leaf["dtype"], tuple(-1 if isinstance(n, str) else n for n in leaf["shape"][1 if free else 0 :])
        )
        for name, leaf in found
    ]
    return tuple(ports), free and bool(found)
