"""The configuration that is saved with a run, in ``OUT/config.yaml``, as it was behind all overrides.

    # sbpjax 0.0.1
    seed: 0
    trainer:
      _call_: sbpjax.train.trainer:Trainer
      …

It can be run again: ``python -m sbpjax.train run7/config.yaml``.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import yaml
from omegaconf import DictConfig, OmegaConf

from sbpjax import naming
from sbpjax.errors import ConfigError

NAME = "config.yaml"
_HEAD = "# sbpjax "


def save_config(config: DictConfig, directory: Path) -> None:
    """Write a configuration into the directory of a run; whole, or not at all."""
    directory.mkdir(parents=True, exist_ok=True)
    part = directory / f"{NAME}.part"
    part.write_text(f"{_HEAD}{naming.VERSION}\n{OmegaConf.to_yaml(config)}")
    os.replace(part, directory / NAME)


def read_saved(path: Path) -> DictConfig:
    """Read what `save_config` wrote.

    Raises:
        ConfigError: it is of another version, or no such file.
    """
    asked = f"reading the configuration {str(path)!r}"
    text = path.read_text()
    head = text.partition("\n")[0]
    rule = f"the first line says by which version it was written, and this is {naming.VERSION}"
    if not head.startswith(_HEAD) or head.removeprefix(_HEAD) != naming.VERSION:
        seen = head if head.startswith(_HEAD) else "a file without a version"
        fix = f"look what has changed, then write {_HEAD}{naming.VERSION} there; or run the Python file"
        raise ConfigError(asked, seen.removeprefix("# "), rule, fix)
    try:
        found = OmegaConf.create(yaml.safe_load(text))
    except yaml.YAMLError as error:
        told = " ".join(str(error).split())
        raise ConfigError(asked, told, "a saved configuration is YAML", "restore it, or run the Python file") from None
    if not isinstance(found, DictConfig):
        raise ConfigError(asked, "no names", "a configuration is a dict", "restore it, or run the Python file")
    return found


def changes(before: Any, after: Any, name: str = "") -> list[str]:
    """Return the differences of two configurations, as lines ``name: before → after``."""
    if isinstance(before, DictConfig) and isinstance(after, DictConfig):
        before, after = (OmegaConf.to_container(one, resolve=True) for one in (before, after))
    if isinstance(before, dict) and isinstance(after, dict):
        found = []
        for key in dict.fromkeys([*before, *after]):
            found += changes(before.get(key), after.get(key), f"{name}.{key}".strip("."))
        return found
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        return [line for i, pair in enumerate(zip(before, after)) for line in changes(*pair, f"{name}.{i}")]
    return [] if before == after else [f"{name}: {before!r} → {after!r}"]
