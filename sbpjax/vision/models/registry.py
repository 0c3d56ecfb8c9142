"""Model registry: `register_model`, `list_models`, and `create_model` by name.

    model = vision.create_model("resnet50", num_classes=10)
    vision.list_models("resnet*d")                     # ['resnet101d', 'resnet152d', ...]

A family registers its members: a name, the class, and the configuration that it is made with. `create_model` changes
that configuration, makes the model, and reads a checkpoint into it.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import sbpjax as flow
from sbpjax import hub, nn
from sbpjax.errors import ConfigError, HubError, nearest

from .blocks import FeatureMaps
from .checkpoint import load_checkpoint

# Called in the file of pretrained weights in the cache, in this order.
ENDINGS = (".safetensors", ".pth", ".pt")


@dataclass(frozen=True)
class Entry:
    """A member of the registry.

    Attributes:
        model: the class, or a function, of a configuration.
        config: a frozen dataclass with the fields `num_classes` and `in_chans`.
        url: where its pretrained weights are, if anywhere.
    """

    model: Callable[[Any], nn.Module]
    config: Any
    url: str | None = None


_ENTRIES: dict[str, Entry] = {}


def register_model(name: str, model: Callable[[Any], nn.Module], config: Any, *, url: str | None = None) -> None:
    """Add a model to those that `create_model` makes.

    Args:
        name: its name; one that is registered already is replaced.
        model: the class, or a function, that makes a model of a configuration.
        config: a frozen dataclass with the fields ``num_classes`` and ``in_chans``.
        url: a file of pretrained weights (safetensors, or ``.pth``); ``create_model(pretrained=True)`` reads it.

    Raises:
        ConfigError: `config` is no such dataclass.

    Example:
        >>> from sbpjax.vision.models.resnet import ResNet, ResNetConfig
        >>> flow.vision.register_model("resnet10", ResNet, ResNetConfig(depths=(1, 1, 1, 1), bottleneck=False))
        >>> flow.vision.list_models("resnet1?")
        ['resnet10', 'resnet18']
    """
    fields = {f.name for f in dataclasses.fields(config)} if dataclasses.is_dataclass(config) else set()
    if not {"num_classes", "in_chans"} <= fields:
        rule = "config is a frozen dataclass with the fields num_classes and in_chans"
        seen = f"a {type(config).__name__}"
        raise ConfigError(
            f"register_model({name!r}, ...)", seen, rule, "a subclass of vision.models.blocks.ImageConfig"
        )
    _ENTRIES[name] = Entry(model, config, url)


def list_models(filter: str = "*") -> list[str]:
    """Return the names of models, sorted.

    Args:
        filter: a shell pattern.

    Example:
        >>> flow.vision.list_models("resnet5*")
        ['resnet50', 'resnet50d']
    """
    return sorted(name for name in _ENTRIES if fnmatchcase(name, filter))


def model_config(name: str) -> Any:
    """Return the configuration that a model is registered with.

    Args:
        name: a name of `list_models`.

    Raises:
        ConfigError: there is no such model.

    Example:
        >>> flow.vision.models.model_config("resnet50").depths
        (3, 4, 6, 3)
    """
    return _entry(name, f"model_config({name!r})").config


def _entry(name: str, operation: str) -> Entry:
    if name in _ENTRIES:
        return _ENTRIES[name]
    tag = str(name).removeprefix("hf-hub:").removeprefix("hf_hub:").removeprefix("timm/")
    known = tag.split(".")[0]
    if known in _ENTRIES:  # as timm names weights: "resnet50.a1_in1k"
        rule = "a name is that of the architecture, without that of the weights"
        fix = f"create_model({known!r}), or from_hub({f'timm/{tag}'!r}) with these weights"
        raise ConfigError(operation, f"{name!r}", rule, fix)
    near = _near(name)
    seen = f"no model is called {name!r}" + (f"; near: {', '.join(near)}" if near else "")
    fix = f"create_model({near[0]!r})" if near else "vision.list_models() has all names"
    raise ConfigError(operation, seen, f"a name is one of {len(_ENTRIES)} in vision.list_models()", fix)


def _near(name: str) -> list[str]:
    """Return up to three names like a wrong one, the nearest first."""
    left, found = dict.fromkeys(_ENTRIES), []
    while len(found) < 3 and (one := nearest(str(name), left)) is not None:
        found.append(one)
        del left[one]
    return found


# What timm and torchvision call otherwise.
_OTHER_NAMES = {
    "checkpoint_path": "checkpoint=...",
    "weights": "checkpoint=..., or pretrained=True",
    "out_indices": "features_only=True, then maps[i] of the maps that it returns",
    "global_pool": "num_classes=0 for pooled features, features_only=True for maps",
}


def create_model(
    name: str,
    *,
    pretrained: bool = False,
    num_classes: int | None = None,
    in_chans: int = 3,
    features_only: bool = False,
    checkpoint: str | os.PathLike | None = None,
    **changes: Any,
) -> nn.Module:
    """Return a new model.

    Args:
        name: a name of `list_models`.
        pretrained: read the pretrained weights: of the file ``NAME.safetensors`` or ``NAME.pth`` in
            ``hub.get_dir()/checkpoints``, else of the url that the model is registered with.
        num_classes: classes; None for those it is registered with, 0 for a model that ends with pooled features.
        in_chans: channels of images.
        features_only: return a `FeatureMaps` in the place of a classifier.
        checkpoint: a file of weights by timm's names, of safetensors or ``.pth``; it has `num_classes` classes.
        **changes: fields of the family's configuration, such as ``drop_path_rate=0.1``.

    Returns:
        The model, in training mode, with local parameters.

    Raises:
        ConfigError: no such name, or no such field.
        CheckpointError: the file does not fit the model: nothing is read then.
        HubError: `pretrained`, and it is not known where the weights are.

    Example:
        >>> model = flow.vision.create_model("resnet18", num_classes=10)
        >>> model(flow.zeros(1, 3, 64, 64)).shape
        sbpjax.Size([1, 10])
    """
    operation = f"create_model({name!r})"
    entry = _entry(name, operation)
    known = [f.name for f in dataclasses.fields(entry.config)]
    for field in changes:
        if field not in known:
            near = None if field == "drop_rate" else nearest(field, known)  # the nearest to dropout is another thing
            fix = _OTHER_NAMES.get(field) or (f"{near}=..." if near else "leave it out: there is nothing like it")
            seen, rule = f"{field}={changes[field]!r}", f"the fields of {name} are {', '.join(known)}"
            raise ConfigError(operation, seen, rule, fix)
    if num_classes is not None:
        changes["num_classes"] = num_classes
    if features_only and checkpoint is None and not pretrained:
        changes["num_classes"] = 0
    config = dataclasses.replace(entry.config, in_chans=in_chans, **changes)
    if checkpoint is None and pretrained:
        checkpoint = _find_pretrained(name, entry)
    model = entry.model(config) if checkpoint is None else _load_model(entry.model, config, checkpoint)
    if features_only:
        model.reset_classifier(0)  # type: ignore[operator]
        return FeatureMaps(model)  # type: ignore[arg-type]
    return model


def _load_model(model_class: Any, config: Any, path: str | os.PathLike) -> nn.Module:
    """Return a model with the values of a file; none are drawn that the file has."""
    with flow.abstract():
        model = model_class(config)
    load_checkpoint(model, path)
    left = {name for name, tensor in _tensors(model).items() if tensor.is_meta}
    if left:  # buffers of fixed values, such as which position is how far from which
        made = _tensors(model_class(config))
        for name, tensor in _tensors(model).items():
            if name in left:
                tensor.data = made[name].data
    return model


def _tensors(model: nn.Module) -> dict[str, flow.Tensor]:
    return {**dict(model.named_parameters()), **dict(model.named_buffers())}


def _find_pretrained(name: str, entry: Entry) -> Path:
    """Return the file of a model's pretrained weights, downloaded if need be."""
    folder = Path(hub.get_dir()) / "checkpoints"
    for ending in ENDINGS:
        if (folder / f"{name}{ending}").exists():
            return folder / f"{name}{ending}"
    if entry.url is None:
        seen = f"no {name}{ENDINGS[0]} in {folder}, and no url"
        rule = "pretrained weights are in the cache, or the model is registered with a url of them"
        fix = f"create_model({name!r}, checkpoint='{name}.safetensors')"
        raise HubError(f"create_model({name!r}, pretrained=True)", seen, rule, fix)
    path = folder / f"{name}{next((e for e in ENDINGS if entry.url.endswith(e)), ENDINGS[0])}"
    folder.mkdir(parents=True, exist_ok=True)
    hub.download_url_to_file(entry.url, os.fspath(path))
    return path
