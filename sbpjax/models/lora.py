"""LoRA: adds trained low-rank matrices to a model, and saves them in PEFT's format.

    model = models.from_pretrained("llama-3-8b/", spec).train()
    lora.attach(model, "blocks.*.attention.[qv]", rank=8, alpha=16)     # all else is frozen
    optimizer = optim.AdamW(lora.parameters(model), lr=1e-4)            # state for the thin matrices alone
    ...
    lora.save(model, "tuned/")              # adapter_config.json, adapter_model.safetensors: some MB
    lora.merge(model)                       # W + scale · B A; then models.save_pretrained writes a whole model

In the files a layer has the name that Hugging Face's model gives it: ``base_model.model.`` + ``model.layers.0.self_attn
.q_proj`` + ``.lora_A.weight``. Where theirs is one matrix and ours are three (GPT-2's ``c_attn``), the three products
are written as one of the sum of their ranks: A's above each other, B's in blocks.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections import Counter
from collections.abc import Collection, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import sbpjax as flow
from sbpjax import comm, env, nn
from sbpjax.checkpoint import save_safetensors
from sbpjax.errors import CheckpointError, OpValueError, nearest

from .adapter_file import CONFIG, DIGEST, PREFIX, TENSORS, digest, read_adapter, refuse
from .layers import LoraLinear
from .pretrained import family_weights, replace
from .weights import Part, Weights

TASKS = {
    "CausalLM": "CAUSAL_LM",
    "LMHeadModel": "CAUSAL_LM",
    "ForConditionalGeneration": "SEQ_2_SEQ_LM",
    "ForSequenceClassification": "SEQ_CLS",
}


def layers(model: nn.Module) -> Iterator[tuple[str, LoraLinear]]:
    """Return the adapted layers of a model, with their names."""
    return ((name, module) for name, module in model.named_modules() if isinstance(module, LoraLinear))


def parameters(model: nn.Module) -> list[flow.Tensor]:
    """Return the trained parameters: A and B of every adapted layer, and those that `attach` unfroze beside them.

    Raises:
        OpValueError: the model has no adapter, so all of its parameters would be trained.
    """
    if next(layers(model), None) is None:
        operation, rule = f"lora.parameters({type(model).__name__}(...))", "the model has adapters"
        raise OpValueError(operation, "no adapted layer", rule, "lora.attach(model) first")
    return [p for p in model.parameters() if p.requires_grad]


def attach(
    model: nn.Module,
    targets: str | Collection[str] = "*.attention.[qv]",
    *,
    rank: int = 8,
    alpha: float = 16.0,
    dropout: float = 0.0,
    also: Collection[str] = (),
) -> nn.Module:
    """Put two thin matrices beside those of linear layers, and freeze all else, in place.

    Args:
        model: of any family and layout. Each matrix is split as the dim of the layer's weight that it shares.
        targets: shell patterns of the layers' names.
        rank: of the products.
        alpha: the products are multiplied by `alpha` / `rank`.
        dropout: probability of a zero in what a product gets, in training.
        also: shell patterns of parameters that are trained themselves, such as a new head: ``"classifier.*"``.

    Returns:
        The model.

    Raises:
        OpValueError: no linear layer has such a name, or an option is out of its range; nothing is changed then.

    Example:
        >>> gpt = flow.models.gpt2.GPT2(
        ...     flow.models.gpt2.GPT2Config(vocab_size=64, n_positions=16, n_embd=16, n_layer=1, n_head=2)
        ... )
        >>> _ = flow.models.lora.attach(gpt, "*.mlp.up", rank=2)
        >>> [list(p.shape) for p in flow.models.lora.parameters(gpt)]
        [[2, 16], [64, 2]]
    """
    patterns = [targets] if isinstance(targets, str) else list(targets)
    operation = f"lora.attach({type(model).__name__}(...), {patterns})"
    plain = {name: m for name, m in model.named_modules() if type(m) is nn.Linear}
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in plain):
            near = nearest(pattern, plain)
            rule = f"a pattern fits the name of a linear layer, of which there are {len(plain)}"
            raise OpValueError(operation, f"no layer {pattern!r}", rule, f"targets={near or next(iter(plain), '')!r}")
    if rank < 1 or alpha <= 0 or not 0 <= dropout < 1:
        seen = f"rank={rank}, alpha={alpha}, dropout={dropout}"
        raise OpValueError(operation, seen, "1 ≤ rank, 0 < alpha, 0 ≤ dropout < 1", "rank=8, alpha=16.0, dropout=0.0")
    with _restore_on_error(model):
        for name, parameter in model.named_parameters():
            is_own = name.rpartition(".")[2] in ("lora_a", "lora_b")  # of an adapter that is there already
            parameter.requires_grad_(is_own or any(fnmatchcase(name, pattern) for pattern in also))
        for name, module in plain.items():
            if any(fnmatchcase(name, pattern) for pattern in patterns):
                _exchange(model, name, LoraLinear(module, rank, alpha / rank, dropout))
    return model


def merge(model: nn.Module) -> nn.Module:
    """Add every product to its matrix and leave plain layers, in place; all parameters are trained again.

    Returns:
        The model; each matrix in the layout that it had.
    """
    for name, layer in list(layers(model)):
        _exchange(model, name, layer.merged())
    return model.requires_grad_(True)


def _exchange(model: nn.Module, name: str, layer: nn.Module) -> None:
    parent, _, last = name.rpartition(".")
    layer.train(model.training)
    before = model.get_submodule(name)
    layer._forward_pre_hooks.update(before._forward_pre_hooks)
    layer._forward_hooks.update(before._forward_hooks)
    setattr(model.get_submodule(parent), last, layer)


# ------------------------------------------------------------------------------------------------------------ files


def save(
    model: nn.Module,
    directory: str | os.PathLike,
    *,
    base: str = "",
    family: ModuleType | None = None,
) -> None:
    """Write the adapter of a model as a folder that PEFT reads; all processes call it.

    An existing folder is replaced once the new one is complete.

    Args:
        model: with adapted layers.
        directory: the folder.
        base: the folder or name of the model without adapter, for the file.
        family: the package of a family of your own.

    Raises:
        CheckpointError: the model has no adapter, or it cannot be written.
    """
    directory, weights = Path(directory), family_weights(model.config.model_type, family)
    found = dict(layers(model))
    if not found:
        operation = f"lora.save({type(model).__name__}(...), {str(directory)!r})"
        raise CheckpointError(operation, "no adapted layer", "an adapter has one", "lora.attach(model) first")
    groups: dict[str, list[tuple[Part, LoraLinear]]] = {}
    for name, layer in found.items():
        part = _part(weights, name)
        groups.setdefault(part.name, []).append((part, layer))
    tensors, ranks, alphas = {}, {}, {}
    for theirs, group in groups.items():
        a, b, scale = _join_layers(sorted(group, key=lambda row: row[0].index))
        tensors[f"{PREFIX}{theirs}.lora_A.weight"], tensors[f"{PREFIX}{theirs}.lora_B.weight"] = a, b
        ranks[theirs], alphas[theirs] = len(a), scale * len(a)
    whole = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad and name.rpartition(".")[2] not in ("lora_a", "lora_b"):
            part = weights.part(name)
            assert part is not None
            whole[part.name] = parameter
    tensors |= {f"{PREFIX}{name}": p.detach().numpy() for name, p in whole.items()}
    rank, alpha = (Counter(x.values()).most_common(1)[0][0] for x in (ranks, alphas))
    values = {
        "peft_type": "LORA",
        "task_type": next((t for end, t in TASKS.items() if weights.architecture(model).endswith(end)), None),
        "base_model_name_or_path": base,
        "r": rank,
        "lora_alpha": alpha,
        "lora_dropout": next(iter(found.values())).drop.p,
        "rank_pattern": {name: r for name, r in ranks.items() if r != rank},
        "alpha_pattern": {name: a for name, a in alphas.items() if a != alpha},
        "target_modules": _targets(model, weights, groups),
        "modules_to_save": sorted({name.rpartition(".")[0] for name in whole}) or None,
        "fan_in_fan_out": any(part.transposed for group in groups.values() for part, _ in group),
        "bias": "none",
        "use_rslora": False,
        "use_dora": False,
        "inference_mode": True,
        "init_lora_weights": True,
    }
    partial, is_first = directory.with_name(directory.name + ".partial"), env.get_rank() == 0
    if is_first:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        (partial / CONFIG).write_text(json.dumps(values, indent=2, sort_keys=True) + "\n")
    metadata = {"format": "pt", DIGEST: digest(tensors, values)}
    save_safetensors({name: flow.tensor(x) for name, x in tensors.items()}, partial / TENSORS, metadata)
    if is_first:
        replace(partial, directory)
    if env.get_world_size() > 1:
        comm.barrier()


def _part(weights: Weights, name: str) -> Part:
    part = weights.part(f"{name}.weight")
    if part is None:
        raise CheckpointError("lora", name, "every adapted layer is in the table of names", "add a row to weights.py")
    return Part(part.name.removesuffix(".weight"), part.index, part.count, part.transposed)


def _join_layers(group: list[tuple[Part, LoraLinear]]) -> tuple[np.ndarray, np.ndarray, float]:
    """Return A, B and the scale of layers that are parts of one of theirs; that of a single layer is its own."""
    scale = group[0][1].scale
    rows = [layer.lora_a.detach().numpy() for _, layer in group]
    a = np.concatenate(rows)
    out, starts = group[0][1].out_features, np.cumsum([0, *map(len, rows)])
    b = np.zeros((out * group[0][0].count, len(a)), a.dtype)
    for (part, layer), start, end in zip(group, starts, starts[1:]):
        b[part.index * out : (part.index + 1) * out, start:end] = layer.lora_b.detach().numpy() * (layer.scale / scale)
    return a, b, scale


def _targets(model: nn.Module, weights: Weights, adapted: Collection[str]) -> list[str]:
    """Return the last names of adapted layers; whole names where some layer of that last name is not adapted."""
    linear = [name for name, module in model.named_modules() if isinstance(module, nn.Linear)]
    every = {_part(weights, name).name for name in linear if weights.part(f"{name}.weight") is not None}
    last = {name.rpartition(".")[2] for name in every - set(adapted)}
    return sorted({name if name.rpartition(".")[2] in last else name.rpartition(".")[2] for name in adapted})


def load(
    model: nn.Module, directory: str | os.PathLike, *, family: ModuleType | None = None, verify: bool = True
) -> nn.Module:
    """Attach the adapter of a folder that PEFT or `save` has written, in place; all else is frozen.

    Args:
        model: without adapter, of any layout.
        directory: with ``adapter_config.json`` and ``adapter_model.safetensors``.
        family: the package of a family of your own.
        verify: compare the files with the SHA-256 that `save` has written; False after an edit on purpose.

    Returns:
        The model.

    Raises:
        CheckpointError: a file is missing or damaged, it is not an adapter of this model, or the model has adapters
            already; nothing is changed then.
    """
    directory = Path(directory)
    operation = f"lora.load({type(model).__name__}(...), {str(directory)!r})"
    weights = family_weights(model.config.model_type, family)
    if (adapted := next(layers(model), None)) is not None:
        rule = "the adapter is loaded into a model without adapters"
        raise CheckpointError(
            operation, f"{adapted[0]} has an adapter", rule, "lora.merge(model), or load the model again"
        )
    values, found = read_adapter(directory, operation, verify)
    arrays = {name.removeprefix(PREFIX): a for name, a in found.items()}
    linear = {name: m for name, m in model.named_modules() if type(m) is nn.Linear}
    made: dict[str, tuple[Any, Any, float]] = {}
    used = set()
    for name, layer in linear.items():
        if weights.part(f"{name}.weight") is None:
            continue
        part = _part(weights, name)
        keys = [f"{part.name}.lora_{which}.weight" for which in "AB"]
        if not all(key in arrays for key in keys):
            continue
        a, b = (arrays[key] for key in keys)
        rank, shape = len(a) if a.ndim else 0, (layer.out_features * part.count, layer.in_features)
        if b.shape != (shape[0], rank) or a.shape != (rank, shape[1]) or not rank:
            seen = f"{part.name}: A {list(a.shape)}, B {list(b.shape)}"
            refuse(operation, seen, f"of a rank r, A is [r, {shape[1]}] and B is [{shape[0]}, r]")
        layer_rank = _find_pattern_value(values, "rank_pattern", part.name, values.get("r", rank))
        if layer_rank != rank:
            refuse(operation, f"{part.name}: A of rank {rank}", f"{CONFIG} has the rank {layer_rank}")
        used |= set(keys)
        rows = slice(part.index * layer.out_features, (part.index + 1) * layer.out_features)
        alpha = _find_pattern_value(values, "alpha_pattern", part.name, values.get("lora_alpha", 8))
        made[name] = np.asarray(a), np.asarray(b[rows]), float(alpha) / _rslora_divisor(values, rank)
    also = _whole_parameters(model, weights, arrays, operation)
    left = sorted(set(arrays) - used - {part.name for part in also.values()})
    if left or not made:
        refuse(operation, f"{left[0] if left else 'no adapted layer'}", "every tensor belongs to a linear layer")
    with _restore_on_error(model, also):
        model.requires_grad_(False)
        for name, (a, b, scale) in made.items():
            layer = LoraLinear(linear[name], len(a), scale, values.get("lora_dropout") or 0.0)
            layer.set(a, b)
            _exchange(model, name, layer)
        for name, part in also.items():
            _write(model, name, part.read(arrays[part.name]))
    return model


def _whole_parameters(
    model: nn.Module, weights: Weights, arrays: dict[str, np.ndarray], operation: str
) -> dict[str, Part]:
    """Return which parameters of the model itself the adapter brings, of the shapes that they have."""
    found = {}
    for name, parameter in model.named_parameters():
        part = weights.part(name)
        if part is None or part.name not in arrays:
            continue
        shape, wanted = arrays[part.name].shape, part.shape(tuple(parameter.shape))
        if shape != wanted:
            refuse(operation, f"{part.name} of shape {list(shape)}", f"in this model it has the shape {list(wanted)}")
        found[name] = part
    return found


@contextlib.contextmanager
def _restore_on_error(model: nn.Module, written: Collection[str] = ()) -> Iterator[None]:
    """Give a model its linear layers, what is trained, and some parameters back if the block raises."""
    modules = {name: m for name, m in model.named_modules() if isinstance(m, nn.Linear)}
    trained = [(p, p.requires_grad) for p in model.parameters()]
    values = {name: model.get_parameter(name).data for name in written}
    try:
        yield
    except BaseException:  # an interrupt, too
        for name, module in modules.items():
            parent, _, last = name.rpartition(".")
            if model.get_submodule(name) is not module:
                setattr(model.get_submodule(parent), last, module)
        for name, value in values.items():
            model.get_parameter(name).data = value
        for parameter, is_trained in trained:
            parameter.requires_grad_(is_trained)
        raise


def _write(model: nn.Module, name: str, value: np.ndarray) -> None:
    parameter = model.get_parameter(name)
    old = parameter.data
    where = {"placement": old.placement, "sbp": old.sbp} if old.is_global else {}
    parameter.data = flow.tensor(value, dtype=old.dtype, **where)
    parameter.requires_grad_(True)


def _find_pattern_value(values: dict[str, Any], pattern: str, name: str, otherwise: float) -> float:
    """Return the rank or alpha of a layer: that of the first name of a pattern that it ends with."""
    fits = (a for key, a in (values.get(pattern) or {}).items() if name == key or name.endswith(f".{key}"))
    return next(fits, otherwise)


def _rslora_divisor(values: dict[str, Any], rank: int) -> float:
    return rank**0.5 if values.get("use_rslora") else rank
