"""Checkpoints of timm and torchvision: read into a model in any layout, and written.

Most families have these names themselves; one that differs has a method ``weights_of(name)``: where a parameter is in
the files, as a `sbpjax.models.Part`. A file of a model's own state dict is read as well.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import sbpjax as flow
from sbpjax import nn
from sbpjax.checkpoint import open_safetensors, read_torch, save_safetensors
from sbpjax.errors import CheckpointError
from sbpjax.models.weights import FileTensors, Part

from .blocks import FeatureMaps

PICKLED = (".pth", ".pt", ".bin", ".tar")  # endings of files as PyTorch saves them
INSIDE = ("state_dict", "model", "model_state_dict", "state_dict_ema", "model_ema")  # where files of training have them


def load_checkpoint(model: nn.Module, path: str | os.PathLike) -> nn.Module:
    """Read a file's tensors into a model's parameters and buffers.

    Args:
        model: of the file's size, with local or global parameters.
        path: of safetensors, a folder with such a file, or ``.pth`` as PyTorch saves it, of which nothing is executed.

    Returns:
        The model.

    Raises:
        CheckpointError: the file is missing or damaged, or has other tensors than the model; nothing is read then.

    Example:
        >>> model = flow.vision.create_model("resnet18")
        >>> flow.vision.models.load_checkpoint(model, "resnet18.safetensors")  # doctest: +SKIP
    """
    operation = f"load_checkpoint({type(model).__name__}, {os.fspath(path)!r})"
    arrays = _open_file(Path(path), operation)
    own = _kept_tensors(model)
    # A file of `model.state_dict()` has the model's own names, whatever those of timm's files are.
    where = Part if own.keys() <= arrays.keys() else getattr(model, "weights_of", Part)
    parts = {name: where(name) for name in own}
    wrong = []
    for name, part in parts.items():
        wanted = part.shape(tuple(own[name].shape)) if own[name].ndim else ()
        if part.name not in arrays:
            counts = name.endswith("num_batches_tracked")  # files from before PyTorch 0.4.1 have none
            wrong += [] if counts else [f"no {part.name}"]
        elif _drop_kernel_dims(arrays[part.name].shape) != _drop_kernel_dims(wanted):
            wrong.append(f"{part.name} {tuple(arrays[part.name].shape)}, for {wanted}")
    used = {part.name for part in parts.values()}
    wrong += [f"{name}, which the model has not" for name in arrays if name not in used]
    if wrong:
        shown = "; ".join(wrong[:5]) + (f"; and {len(wrong) - 5} more" if len(wrong) > 5 else "")
        rule = f"the file has the {len(own)} parameters and buffers of the model, in their shapes"
        raise CheckpointError(operation, shown, rule, _suggest_fix(model, wrong, where, arrays))
    with flow.no_grad():
        for name, part in parts.items():
            if part.name in arrays:
                tensor = own[name]
                options = {"placement": tensor.placement, "sbp": tensor.sbp} if tensor.is_global else {}
                array = _array(part, arrays[part.name]).reshape(tuple(tensor.shape))
                tensor.data = flow.tensor(array, dtype=tensor.dtype, **options)
    return model


def save_checkpoint(model: nn.Module, path: str | os.PathLike) -> None:
    """Write a model's parameters and buffers as one file of safetensors by timm's names, in timm's shapes.

    timm's model of that name and these options takes it, by ``load_state_dict``, and so does `load_checkpoint`. All
    processes call it, and the first writes; the host holds one tensor at a time. A model that `create_model` does not
    make, such as a detector, keeps its own names; for `vit.ViT` there is `models.save_pretrained`.

    Args:
        model: of any layout; of a `FeatureMaps` the model in it, without a classifier.
        path: the file, ``NAME.safetensors``.

    Raises:
        CheckpointError: the file cannot be written, or its ending is that of PyTorch's files.

    Example:
        >>> model = flow.vision.create_model("deit_tiny_patch16_224", num_classes=4, num_hidden_layers=1)
        >>> flow.vision.models.save_checkpoint(model, "deit.safetensors")
        >>> sorted(flow.checkpoint.open_safetensors("deit.safetensors"))[:3]
        ['blocks.0.attn.proj.bias', 'blocks.0.attn.proj.weight', 'blocks.0.attn.qkv.bias']
    """
    if Path(path).suffix in PICKLED:
        operation = f"save_checkpoint({type(model).__name__}, {os.fspath(path)!r})"
        fix = f"{Path(path).stem}.safetensors; or flow.save(model.state_dict(), path), by sbpjax's own names"
        raise CheckpointError(
            operation, f"the ending {Path(path).suffix}", "weights are written as a file of safetensors", fix
        )
    model = model.body if isinstance(model, FeatureMaps) else model
    where = getattr(model, "weights_of", Part)
    tensors = FileTensors((where(name), tensor) for name, tensor in _kept_tensors(model).items())
    save_safetensors(tensors, path, {"format": "pt"})


def _kept_tensors(model: nn.Module) -> dict[str, flow.Tensor]:
    """Return a model's parameters and those buffers that are in files: others are made anew."""
    kept = model.state_dict().keys()
    return {**dict(model.named_parameters()), **{name: b for name, b in model.named_buffers() if name in kept}}


def _suggest_fix(model: nn.Module, wrong: list[str], where: Callable[[str], Part], arrays: Mapping[str, Any]) -> str:
    """Return what mends it: another number of classes, where nothing but the classifier differs."""
    heads = [f"{layer}.{last}" for layer in getattr(model, "CLASSIFIER", ()) for last in ("weight", "bias")]
    theirs = [name for name in (where(head).name for head in heads) if name in arrays]
    if theirs and all(any(text.startswith((f"{name} ", f"{name},")) for name in theirs) for text in wrong):
        classes = arrays[theirs[0]].shape[0]
        return f"create_model(..., num_classes={classes}, checkpoint=...), then model.reset_classifier(num_classes)"
    return "the name and the options that the file was trained with"


def _drop_kernel_dims(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape without the last two dims of a 1 x 1 convolution, which is a product as well."""
    return tuple(shape[:2]) if len(shape) == 4 and shape[2:] == (1, 1) else tuple(shape)


def _array(part: Part, array: Any) -> Any:
    return part.read(array) if array.ndim else np.asarray(array)


def _open_file(path: Path, operation: str) -> Mapping[str, Any]:
    if not path.exists():
        raise CheckpointError(
            operation, "there is no such file", "checkpoint= is a file or a folder", "look at its path"
        )
    if path.is_dir() and not any(path.glob("*.safetensors")):
        rule = "checkpoint= is a file of weights, or a folder with one of safetensors"
        fix = f"model.load_state_dict(sbpjax.load({str(path)!r})) of sbpjax.save, or save_checkpoint"
        raise CheckpointError(operation, "a folder without a file of safetensors", rule, fix)
    if path.suffix not in PICKLED:
        return open_safetensors(path)
    found = read_torch(path)
    while isinstance(found, Mapping) and (
        inner := next((k for k in INSIDE if isinstance(found.get(k), Mapping)), None)
    ):
        found = found[inner]
    if not isinstance(found, Mapping) or not all(hasattr(v, "shape") for v in found.values()):
        rule = f"a file of weights is a dict of names and tensors, or has one under {', '.join(INSIDE)}"
        raise CheckpointError(operation, f"a {type(found).__name__} of other things", rule, "save model.state_dict()")
    return {name.removeprefix("module."): value for name, value in found.items()}
