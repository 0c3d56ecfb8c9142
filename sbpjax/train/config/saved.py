"""Saved configuration of a run, ``OUT/config.yaml``: the configuration after all overrides.

    # sbpjax 0.0.1
    seed: 0
    trainer:
      _call_: sbpjax.train.trainer:Trainer
      …

It can be run again: ``python -m sbpjax.train run7/config.yaml``. Then it calls parts of sbpjax, and of the
packages that are allowed (`names.py`).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import yaml
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

import sbpjax
from sbpjax.errors import ConfigError
from sbpjax.train.disk import convert_os_errors

from .lazy import convert_interpolation_errors

NAME = "config.yaml"
_HEAD = "# sbpjax "


def save_config(config: DictConfig, directory: Path) -> None:
    """Write a configuration into the directory of a run; whole, or not at all.

    Raises:
        TrainError: the disk is full, or the directory cannot be written to.
    """
    with convert_os_errors(f"writing {directory / NAME}", directory):
        directory.mkdir(parents=True, exist_ok=True)
        part = directory / f"{NAME}.part"
        part.write_text(f"{_HEAD}{sbpjax.__version__}\n{OmegaConf.to_yaml(config)}", encoding="utf-8")
        os.replace(part, directory / NAME)


def read_saved(path: Path) -> DictConfig:
    """Read a file of `save_config` without checking its calls; `load_config` and `load_run` check them.

    Raises:
        ConfigError: the file is of another version, damaged, or missing.
    """
    operation = f"reading the configuration {str(path)!r}"
    fix = "restore it, or run the Python file"
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(operation, f"{error}", "a saved configuration is a file of text", fix) from None
    head = text.partition("\n")[0]
    rule = f"the first line has the version that wrote it, and this is {sbpjax.__version__}"
    if not head.startswith(_HEAD) or head.removeprefix(_HEAD) != sbpjax.__version__:
        seen = head if head.startswith(_HEAD) else "a file without a version"
        fix = f"look for changes, then write {_HEAD}{sbpjax.__version__} there; or run the Python file"
        raise ConfigError(operation, seen.removeprefix("# ")[:100], rule, fix)
    try:
        found = OmegaConf.create(yaml.load(text, PlainLoader))
    except (yaml.YAMLError, OmegaConfBaseException, ValueError, RecursionError) as error:
        seen = " ".join(str(error).split())[:300]
        raise ConfigError(operation, seen, "a saved configuration is YAML of plain values", fix) from None
    if not isinstance(found, DictConfig):
        raise ConfigError(operation, "no names", "a configuration is a dict", fix)
    return found


class PlainLoader(yaml.SafeLoader):
    """YAML loader without aliases, which can expand beyond memory, and without duplicate keys."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark
            raise yaml.MarkedYAMLError(problem="an alias; write its value", problem_mark=mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        names = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        for (key, _), name in zip(node.value, names, strict=False):
            if names.count(name) > 1:
                raise yaml.MarkedYAMLError(problem=f"the name {name!r} twice", problem_mark=key.start_mark)
        return super().construct_mapping(node, deep)


def resolve_config(config: DictConfig, name: str) -> dict[Any, Any]:
    """Return a configuration as dicts and lists, with its interpolations resolved.

    Raises:
        ConfigError: an interpolation has no target, or is circular.
    """
    with convert_interpolation_errors(f"reading {name}"):
        found = OmegaConf.to_container(config, resolve=True)
    assert isinstance(found, dict)
    return found


def changes(before: Any, after: Any, name: str = "") -> list[str]:
    """Return the differences of two configurations, as lines ``name: before → after``."""
    if isinstance(before, DictConfig) and isinstance(after, DictConfig):
        before, after = resolve_config(before, "the saved configuration"), resolve_config(after, "the configuration")
    if isinstance(before, dict) and isinstance(after, dict):
        found = []
        for key in dict.fromkeys([*before, *after]):
            found += changes(before.get(key), after.get(key), f"{name}.{key}".strip("."))
        return found
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        return [line for i, pair in enumerate(zip(before, after)) for line in changes(*pair, f"{name}.{i}")]
    return [] if before == after else [f"{name}: {before!r} → {after!r}"]
