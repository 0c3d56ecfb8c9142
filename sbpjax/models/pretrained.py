"""Checkpoints in Hugging Face's layout: read into a sharded model, and written from one.

    llama-3-8b/
        config.json                          the fields of a `Config`
        model.safetensors.index.json         which file has which tensor, if there are several files
        model-00001-of-00004.safetensors …   the tensors
        tokenizer.json …                     carried along when a model is saved

Nothing is half done. A folder is read in three steps: the configuration; names and shapes of all tensors; and only when
all of them fit, the tensors, one after the other. A folder is written beside its place and then renamed.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import shutil
from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import sbpjax as flow
from sbpjax import comm, env, nn
from sbpjax.checkpoint import open_safetensors, save_safetensors
from sbpjax.errors import CheckpointError, ConfigError, nearest
from sbpjax.utils.host import show_progress

from . import adapter_file
from .parallel import Parallel
from .parallelize import Layouts
from .weights import FileTensors, Part, Weights

# By ``model_type``: the folder of this room.
FAMILIES = {
    "llama": "llama",
    "mistral": "llama",
    "qwen2": "llama",
    "qwen3": "llama",
    "mixtral": "mixtral",
    "gpt2": "gpt2",
    "bert": "bert",
    "t5": "t5",
}
CARRIED = ("tokenizer*", "vocab*", "merges.txt", "special_tokens_map.json", "added_tokens.json", "*.model",
           "generation_config.json", "chat_template*")  # fmt: skip
DTYPES = {"float32": flow.float32, "bfloat16": flow.bfloat16, "float16": flow.float16, "float64": flow.float64}


def from_pretrained(
    directory: str | os.PathLike,
    parallel: Parallel | None = None,
    *,
    architecture: str | None = None,
    fresh: Collection[str] = (),
    dtype: flow.dtype | None = None,
    family: ModuleType | None = None,
    **changes: Any,
) -> nn.Module:
    """Return the model of a folder in Hugging Face's layout, each tensor read into its shards.

    The host holds one tensor at a time.

    Args:
        directory: with ``config.json`` and one or several ``*.safetensors``.
        parallel: the mesh; without it all parameters are local.
        architecture: the class, as ``config.json`` would name it; by default the one that it names. Tensors of the
            folder that another class does not have are left out.
        fresh: patterns of parameters that the folder need not have, such as ``"classifier.*"``: they start as in a
            new model.
        dtype: of the parameters; by default as in the files.
        family: the package of a family of your own; by default the one that ``model_type`` names.
        changes: fields of the configuration to change: ``num_labels=4``.

    Returns:
        The model, in evaluation mode as from `transformers`; a `Trainer` sets training mode, another loop calls
        ``model.train()``.

    Raises:
        CheckpointError: a file is missing or damaged, or its tensors are not the model's; nothing is loaded then.
        ConfigError: ``config.json`` has a field that the family does not know.
        PlacementError: the mesh does not fit the model.

    Example:
        >>> config = flow.models.llama.LlamaConfig(
        ...     vocab_size=64, hidden_size=16, intermediate_size=24, num_hidden_layers=1, num_attention_heads=4
        ... )
        >>> flow.models.save_pretrained(flow.models.llama.Llama(config), "tiny")
        >>> model = flow.models.from_pretrained("tiny", flow.models.Parallel(tensor=2, device="cpu"))
        >>> model.blocks[0].mlp.down.weight.sbp
        (sbpjax.sbp.split(dim=1),)
    """
    directory = Path(directory)
    values = _config_of(directory)
    weights = family_weights(values.get("model_type"), family)
    made = _class(values, weights, architecture, directory)
    config = weights.config.from_dict(values | changes, str(directory / "config.json"))
    arrays = weights.name_tensors(open_safetensors(directory))
    _check_layers(config, arrays, directory)
    with flow.abstract():
        model = made(config)
    layouts = None if parallel is None else Layouts(model, parallel)
    parts = _match_parameters(model, arrays, weights, directory, fresh, only_own=architecture is None)
    start = _make_fresh(made, config, [name for name, part in parts.items() if part is None])
    with show_progress(f"loading {directory}", sum(parameter.numel() for parameter in model.parameters())) as progress:
        for name, parameter in model.named_parameters():
            part = parts[name]
            value = start[name] if part is None else part.read_parameter(arrays, tuple(parameter.shape))
            place, layout = (None, None) if layouts is None else layouts.of[name]
            parameter.data = flow.tensor(value, dtype=dtype, placement=place, sbp=layout)
            progress.advance(parameter.numel())
    if layouts is not None:
        layouts.prepare(model)
    return model.eval()


def save_pretrained(
    model: nn.Module,
    directory: str | os.PathLike,
    *,
    files_from: str | os.PathLike | None = None,
    shard_bytes: int = 5 * 10**9,
    family: ModuleType | None = None,
) -> None:
    """Write a model as a folder in Hugging Face's layout; all processes call it.

    The host holds one tensor at a time. A folder that is there already is replaced when the new one is whole.

    Args:
        model: of any layout.
        directory: the folder.
        files_from: a folder whose tokenizer files are carried along.
        shard_bytes: the most that one file holds; a larger tensor has a file of its own.
        family: the package of a family of your own.

    Raises:
        CheckpointError: the folder cannot be written.
    """
    directory = Path(directory)
    weights = family_weights(model.config.model_type, family)
    tensors = _tensors(model, weights)
    files = _shards(tensors, shard_bytes)
    partial, is_first = directory.with_name(directory.name + ".partial"), env.get_rank() == 0
    if is_first:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        if files_from is not None:
            for file in sorted(Path(files_from).iterdir()):
                if any(fnmatchcase(file.name, pattern) for pattern in CARRIED):
                    shutil.copyfile(file, partial / file.name)
    with show_progress(f"saving {directory}", len(files)) as progress:
        for file, names in files.items():
            save_safetensors(tensors.select(names), partial / file, {"format": "pt"})
            progress.advance(1)
    if is_first:
        if len(files) > 1:
            table = {name: file for file, names in files.items() for name in names}
            index = {"metadata": {"total_size": sum(map(tensors.bytes, tensors))}, "weight_map": table}
            (partial / "model.safetensors.index.json").write_text(json.dumps(index, indent=2))
        values = model.config.to_dict() | {"architectures": [weights.architecture(model)]}
        values["dtype"] = next(name for name, d in DTYPES.items() if d == next(iter(model.parameters())).dtype)
        (partial / "config.json").write_text(json.dumps(values, indent=2, sort_keys=True) + "\n")
        replace(partial, directory)
    if env.get_world_size() > 1:
        comm.barrier()


def replace(new: Path, place: Path) -> None:
    """Put a folder in the place of another one, which is removed when the new one is there."""
    old = place.with_name(place.name + ".old")
    shutil.rmtree(old, ignore_errors=True)
    if place.exists():
        place.rename(old)
    new.rename(place)
    shutil.rmtree(old, ignore_errors=True)


def _config_of(directory: Path) -> dict[str, Any]:
    path, operation = directory / "config.json", f"from_pretrained({str(directory)!r})"
    rule = "a folder has config.json and *.safetensors, as transformers writes them"
    if not directory.is_dir():
        rule = "a model is a folder with config.json; names of the Hugging Face Hub are not resolved"
        raise CheckpointError(operation, "no folder of this name", rule, _download_fix(directory))
    if not path.is_file() and (directory / adapter_file.CONFIG).is_file():
        rule = "a LoRA adapter has only its own matrices, and a model has all of its weights"
        fix = "model = lora.merge(lora.load(from_pretrained(base), adapter)), then save_pretrained(model, folder)"
        raise CheckpointError(operation, f"{adapter_file.CONFIG} and no config.json", rule, fix)
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(values, dict):
            raise ValueError("it holds no table of fields")
    except (OSError, ValueError, RecursionError) as error:
        fix = f"a config.json beside the weights; {path} is not one"
        raise CheckpointError(operation, f"{type(error).__name__}: {error}", rule, fix) from None
    return values


def _download_fix(directory: Path) -> str:
    name = str(directory)
    if directory.is_absolute() or name.startswith(".") or name.count(os.sep) > 1:
        return "the path of an existing folder"
    return f"hf download {name} --local-dir {directory.name}, then from_pretrained({directory.name!r})"


def family_weights(model_type: str | None, family: ModuleType | None = None) -> Weights:
    """Return the table of a family.

    Args:
        model_type: as in ``config.json``.
        family: the package of a family of your own.

    Raises:
        ConfigError: there is no such family.
    """
    if family is not None:
        return importlib.import_module(f"{family.__name__}.weights").WEIGHTS
    if not isinstance(model_type, str) or model_type not in FAMILIES:
        near = nearest(str(model_type), FAMILIES)
        fix = f'"model_type": "{near}"' if near else "family= gives a package with model.py, sharding.py, weights.py"
        rule = f"families: {', '.join(FAMILIES)}"
        raise ConfigError("the family of a model", f"model_type={model_type!r}", rule, fix)
    return importlib.import_module(f"{__package__}.{FAMILIES[model_type]}.weights").WEIGHTS


def _class(values: Mapping[str, Any], weights: Weights, architecture: str | None, directory: Path) -> type:
    named = [architecture] if architecture else values.get("architectures") or list(weights.architectures)[:1]
    first = named[0] if isinstance(named, list) else named
    if not isinstance(first, str) or first not in weights.architectures:
        near = nearest(str(first), weights.architectures)
        rule = f"classes of {values.get('model_type')}: {', '.join(weights.architectures)}"
        fix = f"architecture={near or next(iter(weights.architectures))!r}"
        raise ConfigError(f"the model of {str(directory)!r}", f"architecture {first!r:.100}", rule, fix)
    return weights.architectures[first]


def _check_layers(config: Any, arrays: Mapping[str, np.ndarray], directory: Path) -> None:
    """Refuse more layers, or experts, than the files have tensors, before a model is made of them."""
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        is_count = "layer" in field.name or field.name.endswith("experts")
        if is_count and type(value) is int and value > len(arrays):
            rule = f"every layer has a tensor, of which the files have {len(arrays):,}"
            fix = "check config.json against the files"
            raise CheckpointError(f"from_pretrained({str(directory)!r})", f"{field.name}={value:,}", rule, fix)


def _match_parameters(
    model: nn.Module,
    arrays: Mapping[str, np.ndarray],
    weights: Weights,
    directory: Path,
    fresh: Collection[str],
    only_own: bool,
) -> dict[str, Part | None]:
    """Return for each parameter where it is in the files, None for a fresh one; raise unless all of it fits."""
    parts: dict[str, Part | None] = {}
    wrong, used = [], set()
    for name, parameter in model.named_parameters():
        part, shape = weights.part(name), tuple(parameter.shape)
        if part is None:
            wrong.append(f"{name} is in no row of the table of names")
        rows = [] if part is None else part.rows(shape)
        if not any(row.name in arrays for row in rows) and any(fnmatchcase(name, pattern) for pattern in fresh):
            part, rows = None, []
        for row in rows:
            if row.name not in arrays:
                wrong.append(f"no {row.name}")
            elif tuple(arrays[row.name].shape) != row.shape(shape):
                wrong.append(f"{row.name} of shape {list(arrays[row.name].shape)}, for {list(row.shape(shape))}")
        parts[name] = part
        used.update(row.name for row in rows)
    left = [name for name in arrays if name not in used and not weights.is_skipped(name)]
    for name, other in weights.copies.items():
        if name in arrays and name not in used and other in used and not np.array_equal(arrays[name], arrays[other]):
            wrong.append(f"{name} that differs from {other}, which config.json ties")
    if only_own:
        wrong += [f"{name}, which the model has not" for name in left]
    if wrong:
        shown = "; ".join(wrong[:5]) + (f"; and {len(wrong) - 5} more" if len(wrong) > 5 else "")
        rule = f"the folder has the {len(parts)} parameters of {type(model).__name__}, in their shapes"
        fix = "check config.json against the files; fresh=('name.*',) for parameters that start anew"
        raise CheckpointError(f"from_pretrained({str(directory)!r})", shown, rule, fix)
    return parts


def _make_fresh(made: type, config: Any, names: Collection[str]) -> dict[str, np.ndarray]:
    """Return fresh values of some parameters: those of a new model."""
    if not names:
        return {}
    model = made(config)
    return {name: p.detach().numpy() for name, p in model.named_parameters() if name in set(names)}


def _tensors(model: nn.Module, weights: Weights) -> FileTensors:
    """Return the tensors of the files of a model."""
    operation = f"save_pretrained({type(model).__name__}(...))"
    parts = []
    for name, parameter in model.named_parameters():
        part = weights.part(name)
        if name.endswith((".lora_a", ".lora_b")):
            rule, fix = "a whole model has no adapters", "lora.merge(model) first, or lora.save(model, directory)"
            raise CheckpointError(operation, name, rule, fix)
        if part is None:
            raise CheckpointError(operation, name, "every parameter is in the table of names", "add a row to it")
        parts.append((part, parameter))
    return FileTensors(parts)


def _shards(tensors: FileTensors, most: int) -> dict[str, list[str]]:
    """Return which file gets which tensors, in order, each file as full as may be."""
    groups: list[list[str]] = [[]]
    size = 0
    for name in tensors:
        if groups[-1] and size + tensors.bytes(name) > most:
            groups.append([])
            size = 0
        groups[-1].append(name)
        size += tensors.bytes(name)
    if len(groups) == 1:
        return {"model.safetensors": groups[0]}
    return {f"model-{i + 1:05}-of-{len(groups):05}.safetensors": names for i, names in enumerate(groups)}
