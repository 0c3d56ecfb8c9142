"""Run a Python file as a module, with relative imports, from any folder.

module = run_file(Path("configs/gpt2.py"))       # `from .common import data` reads configs/common.py
function = module_of("/home/me/configs/gpt2.py")  # the same module again, run if needed

A configuration, and the user's modules that it imports, are compiled from source. Python's bytecode cache would return
the old code if a file changed within a second and kept its size: it compares times in seconds, and sizes.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import sysconfig
import traceback
import types
from collections.abc import Iterator
from pathlib import Path

import sbpjax
from sbpjax.errors import ConfigError, SbpjaxError

ROOT = "_sbpjax_config"


class _Source(importlib.machinery.SourceFileLoader):
    """Compiles a module from its source, and neither reads nor writes bytecode."""

    def get_code(self, fullname: str) -> types.CodeType:
        path = self.get_filename(fullname)
        self.text = self.get_data(path)
        return self.source_to_code(self.text, path)

    def is_current(self) -> bool:
        """Return whether the file is unchanged since it was run."""
        try:
            return self.get_data(self.path) == getattr(self, "text", None)
        except OSError:
            return False


class _Finder(importlib.abc.MetaPathFinder):
    """Finds modules for configurations: those below `ROOT`, and the user's own while one is read."""

    def __init__(self) -> None:
        self.reading = 0

    def find_spec(self, fullname, path=None, target=None):
        is_ours = fullname.partition(".")[0] == ROOT
        if not is_ours and not self.reading:
            return None
        others = (finder for finder in list(sys.meta_path) if finder is not self)
        spec = next((spec for finder in others if (spec := finder.find_spec(fullname, path, target))), None)
        if spec is None or type(spec.loader) is not importlib.machinery.SourceFileLoader:
            return spec
        if not is_ours and _is_installed(spec.loader.path):
            return spec
        loader = _Source(fullname, spec.loader.path)
        found = importlib.util.spec_from_file_location(fullname, spec.loader.path, loader=loader)
        assert found is not None
        found.submodule_search_locations = spec.submodule_search_locations
        return found


_FINDER = _Finder()
_INSTALLED = (*sbpjax.__path__, sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"))


def _is_installed(file: str) -> bool:
    """Return whether a file is of Python, of this package or of an installed one, which no user edits meanwhile."""
    path = Path(file)
    inside = {"site-packages", "dist-packages"}.intersection(path.parts)
    return bool(inside) or any(path.is_relative_to(root) for root in _INSTALLED)


@contextlib.contextmanager
def compile_from_source() -> Iterator[None]:
    """Within the block, compile the user's imported modules from source."""
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)
    importlib.invalidate_caches()  # which files a folder has is cached by a time in seconds, too
    _FINDER.reading += 1
    try:
        yield
    finally:
        _FINDER.reading -= 1


def _name(path: Path) -> list[str]:
    """Return the name of a file's module: packages as its folders are, so that relative imports find them."""
    return [ROOT, *(part.replace(".", "_") for part in (*path.parent.parts[1:], path.stem))]


def forget(*, files: bool = False) -> None:
    """Unload the modules imported for configurations if the file of one has changed.

    Args:
        files: unload those that `run_file` has run in any case.
    """
    imported = {
        name: loader
        for name, module in list(sys.modules.items())
        if isinstance(loader := getattr(getattr(module, "__spec__", None), "loader", None), _Source)
    }
    changed = not all(loader.is_current() for loader in imported.values())
    for name in list(sys.modules):
        if name.partition(".")[0] == ROOT if files else changed and name in imported:
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
        ConfigError: it raises an error; the text has its line.
    """
    names = _name(path)
    for depth in range(len(names) - 1):
        name = ".".join(names[: depth + 1])
        if name not in sys.modules:
            package = types.ModuleType(name)
            package.__path__ = [str(Path(*path.parts[: depth + 1]))]
            sys.modules[name] = package
    name = ".".join(names)
    spec = importlib.util.spec_from_file_location(name, path, loader=_Source(name, str(path)))
    assert spec is not None and spec.loader is not None  # a file that ends in .py
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        with compile_from_source():
            spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise config_error(error, str(path)) from None
    return module


def config_error(error: Exception, source: str) -> SbpjaxError:
    """Return the error of a configuration that does not run, with the line where it stopped."""
    if isinstance(error, SbpjaxError):
        return error
    frames = [
        f for f in traceback.extract_tb(error.__traceback__) if f.filename[0] != "<" and not _is_installed(f.filename)
    ]
    where = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else source
    if isinstance(error, SyntaxError) and error.filename:
        where = f"{error.filename}:{error.lineno}"
    rule = "a configuration is a file of Python that runs"
    return ConfigError(
        f"reading the configuration {source!r}", f"{type(error).__name__}: {error}", rule, f"mend {where}"
    )
