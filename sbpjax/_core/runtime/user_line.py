"""The user's line: the innermost frame of a stack outside sbpjax and its dependencies, for errors and warnings."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import sysconfig
import warnings
from types import FrameType

_LIBRARY = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..")) + os.sep
_STANDARD = sysconfig.get_paths()["stdlib"] + os.sep
_DATACLASSES = os.path.join(_STANDARD, "dataclasses.py")  # makes the text of `__init__`, whose file is "<string>"
_IMPORT_SYSTEM = "<frozen importlib"
_DEPENDENCIES = ("jax", "jaxlib", "numpy", "flax", "optax")
UNKNOWN_LINE = "<unknown>"


def user_line() -> str:
    """Return ``file:line`` of the innermost frame outside sbpjax, JAX and NumPy."""
    return line_in_user_code(sys._getframe(1))


def line_in_user_code(frame: FrameType | None) -> str:
    """Return ``file:line`` of the innermost frame outside the library that a frame is, or was called from."""
    found = _user_frame(frame)
    return UNKNOWN_LINE if found is None else f"{found.f_code.co_filename}:{found.f_lineno}"


def _user_frame(frame: FrameType | None) -> FrameType | None:
    while frame is not None:
        name = frame.f_code.co_filename
        of_a_dataclass = name == _DATACLASSES or (name == "<string>" and frame.f_code.co_name == "__init__")
        of_the_library = is_library_file(name) or of_a_dataclass
        importer = None if of_the_library else _importing_library_frame(frame)
        if not of_the_library and importer is None:
            return frame
        frame = importer or frame.f_back
    return None


def _importing_library_frame(frame: FrameType | None) -> FrameType | None:
    """Return the library's frame whose ``import`` runs the module of a frame, such as JAX's for SciPy; else None."""
    imports = False
    while frame is not None:
        name = frame.f_code.co_filename
        frozen = name.startswith(_IMPORT_SYSTEM)
        if imports and not frozen and is_library_file(name):
            return frame
        imports, frame = frozen, frame.f_back
    return None


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the user's line; a `stacklevel` would name a line of the library where the library's depth varies."""
    frame = _user_frame(sys._getframe(1))
    if frame is None:  # a thread or a command of the library
        warnings.warn(text, category, stacklevel=2)
        return
    seen = frame.f_globals.setdefault("__warningregistry__", {})
    warnings.warn_explicit(
        text, category, frame.f_code.co_filename, frame.f_lineno, frame.f_globals.get("__name__", "<string>"), seen
    )


@functools.lru_cache(4096)  # files of a program: tracing looks one up for each equation
def is_library_file(filename: str) -> bool:
    """Return whether a file belongs to sbpjax, to a dependency, or to contextlib, whose decorators they use."""
    return is_own_file(filename) or _is_dependency(filename) or filename == contextlib.__file__


def is_own_file(filename: str) -> bool:
    """Return whether a file belongs to sbpjax."""
    return filename.startswith(_LIBRARY)


def is_users_file(filename: str) -> bool:
    """Return whether a file belongs neither to sbpjax, nor to its dependencies, nor to Python."""
    standard = filename.startswith(_STANDARD) and "site-packages" not in filename
    return not standard and not is_library_file(filename)


def _is_dependency(filename: str) -> bool:
    return filename.startswith((*_folders(), "<frozen"))


def _folders() -> tuple[str, ...]:
    """Return the folders of the dependencies that are loaded; a user's own folder may be called ``jax``."""
    loaded = [sys.modules[name] for name in _DEPENDENCIES if name in sys.modules]
    return tuple([os.path.dirname(file) + os.sep for module in loaded if (file := getattr(module, "__file__", None))])


def full_tracebacks() -> bool:
    """Return whether ``SBPJAX_FULL_TRACEBACK=1`` requests library frames in tracebacks."""
    return os.environ.get("SBPJAX_FULL_TRACEBACK", "0") not in ("", "0")
