"""`load_config`: read a configuration from a Python file, a module, or a run's saved file.

    config = load_config("configs/gpt2.py")          # top-level values and calls of the file
    config = load_config("examples.gpt2.config")     # a module
    config = load_config("run7/config.yaml")

A Python file may import others of its folder or of the folders above, ``from .common import data``, wherever Python was
started. Its numbers, texts, lists, dicts and calls are the configuration; names that begin with an underscore, and all
other values, such as imported ones, are not.
"""

from __future__ import annotations

import importlib
import os
import sys
import types
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, ListConfig, OmegaConf

from sbpjax.errors import ConfigError, nearest

from .files import compile_from_source, config_error, forget, run_file
from .lazy import convert_interpolation_errors, plain
from .names import Allowed, plain_values
from .saved import read_saved

VALUES = (bool, int, float, str, list, tuple, dict, DictConfig, ListConfig)


def load_config(source: str | os.PathLike, *, allow: Iterable[str] = (), trust: bool = False) -> DictConfig:
    r"""Return the tree of a configuration.

    Args:
        source: path of a ``.py`` or ``.yaml`` file, or the name of a module. The file or module in Python is run.
        allow: of a ``.yaml``: packages, and ``.py`` files, that it may call in addition to the parts of sbpjax; see
            `sbpjax.train.config.names`.
        trust: let a ``.yaml`` call anything. This runs its author's code.

    Raises:
        ConfigError: there is no such file, it cannot be run or read, is of another version, or has a call that is not
            allowed.

    Example:
        >>> _ = Path("small.py").write_text("steps = 10\nsizes = [1, 2]")
        >>> load_config("small.py")
        {'steps': 10, 'sizes': [1, 2]}
    """
    text = os.fspath(source)
    forget(files=text.endswith(".py"))
    if text.endswith((".yaml", ".yml")):
        found = read_saved(_find_config(text))
        Allowed(allow, trust=trust, operation=f"reading the configuration {text!r}").check(plain_values(found), "")
        return found
    return _tree(run_file(_find_config(text)) if text.endswith(".py") else _module(text), text)


def _find_config(text: str) -> Path:
    path = Path(text).absolute()
    if path.is_file():
        return path
    there = [str(one.relative_to(path.parent)) for one in path.parent.glob("*") if one.suffix in (".py", ".yaml")]
    near = nearest(path.name, there) if path.parent.is_dir() else None
    fix = str(Path(text).with_name(near)) if near else "the path of a .py or .yaml file"
    raise ConfigError(f"reading the configuration {text!r}", "no such file", "a configuration is a file", fix)


def _module(name: str) -> types.ModuleType:
    here = os.getcwd()
    sys.path.insert(0, here)
    try:
        with compile_from_source():
            return importlib.import_module(name)
    except Exception as error:
        if not isinstance(error, ModuleNotFoundError):
            raise config_error(error, name) from None
        operation, rule = f"reading the configuration {name!r}", "a configuration is a .py or .yaml file, or a module"
        fix = f"{name}.py, if it is a file"
        if name.startswith("examples.") and (error.name or "").startswith("examples"):
            fix = "run it in the folder of the project's source: its examples are not installed"
        raise ConfigError(operation, str(error), rule, fix) from None
    finally:
        sys.path.remove(here)


def _tree(module: types.ModuleType, source: str) -> DictConfig:
    found: dict[str, Any] = {}
    for name, value in vars(module).items():
        if not name.startswith("_") and (value is None or isinstance(value, VALUES)):
            found[name] = plain(value, f"{name} in {source}")
    with convert_interpolation_errors(f"reading the configuration {source!r}"):
        return OmegaConf.create(found)
