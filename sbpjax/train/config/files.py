"""Run a file of Python as a module, with relative imports, wherever it lies.

module = run_file(Path("configs/gpt2.py"))       # `from .common import data` reads configs/common.py
function = module_of("/home/me/configs/gpt2.py")  # the same module again, run if it was not
"""

from __future__ import annotations

import importlib.util
import sys
import traceback
import types
from pathlib import Path

from sbpjax.errors import ConfigError, SbpjaxError

ROOT = "_sbpjax_config"


def _name(path: Path) -> list[str]:
    """Return the name of a file's module: packages as its folders are, so that relative imports find them."""
    return [ROOT, *(part.replace(".", "_") for part in (*path.parent.parts[1:], path.stem))]


def forget() -> None:
    """Forget all files, which may have changed."""
    for name in [name for name in sys.modules if name.partition(".")[0] == ROOT]:
        del sys.modules[name]


def module_of(file: str) -> types.ModuleType:
    """Return the module of a file."""
    path = Path(file)
    return sys.modules.get(".".join(_name(path))) or run_file(path)


def file_of(module: str) -> str | None:
    """Return the file of a module that `run_file` has made, None for any other."""
    return getattr(sys.modules.get(module), "__file__", None) if module.partition(".")[0] == ROOT else None


def run_file(path: Path) -> types.ModuleType:
    """Run a file, and return its module.

    Args:
        path: an absolute one, of a ``.py``.

    Raises:
        ConfigError: it raises something; the text has its line.
    """
    names = _name(path)
    for depth in range(len(names) - 1):
        name = ".".join(names[: depth + 1])
        if name not in sys.modules:
            package = types.ModuleType(name)
            package.__path__ = [str(Path(*path.parts[: depth + 1]))]
            sys.modules[name] = package
    spec = importlib.util.spec_from_file_location(".".join(names), path)
    assert spec is not None and spec.loader is not None  # a file that ends in .py
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[module.__name__]
        if isinstance(error, SbpjaxError):
            raise
        frames = [one for one in traceback.extract_tb(error.__traceback__) if one.filename.startswith(path.anchor)]
        where = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else str(path)
        if isinstance(error, SyntaxError):
            where = f"{error.filename}:{error.lineno}"
        seen = f"{type(error).__name__}: {error}"
        rule = "a configuration is a file of Python that runs"
        raise ConfigError(f"reading the configuration {str(path)!r}", seen, rule, f"mend {where}") from None
    return module
