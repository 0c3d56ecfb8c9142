"""`MissingPlaceholder`: placeholder for an absent name, so that a library can be imported around it.

    from torch.serialization import MAP_LOCATION      # in a library, outside `try`: a placeholder
    def load(path, map_location: MAP_LOCATION): ...   # it can be mentioned; a call of it raises

Libraries mention many names of PyTorch that they use rarely: in annotations, as bases, as decorators. Such a mention is
an attribute or an import while a module is being imported. Within ``try``, by ``hasattr``, or in the program itself, an
absent name is an error at once, which the code there may handle.
"""

from __future__ import annotations

import dis
import inspect
import sys
from types import FrameType
from typing import Any

from sbpjax.errors import UnknownNameError, page


def page_of(peer: str) -> str:
    """Return the page that lists which names of another package there are."""
    return page("how_to/torch_scripts.md") if peer == "torch" else page("reference/api_coverage.md")


_HERE = __name__.rpartition(".")[0]
_MENTIONS = {
    dis.opmap[name] for name in ("IMPORT_NAME", "IMPORT_FROM", "LOAD_ATTR", "LOAD_METHOD") if name in dis.opmap
}


def is_mention() -> bool:
    """Return whether the name that is looked up is only mentioned by a library that is being imported."""
    frame = _frame_outside(sys._getframe(1))
    return frame is not None and frame.f_code.co_code[frame.f_lasti] in _MENTIONS and is_unguarded_import()


def is_unguarded_import() -> bool:
    """Return whether a library is being imported that handles no error of the caller.

    None of the frames from the caller to the module's body is within ``try``, which may have another way without a
    name, and none of the bodies that import it, up to the first function.
    """
    frame, imported = _frame_outside(sys._getframe(1)), False
    while frame is not None:
        if imported and frame.f_code.co_flags & inspect.CO_OPTIMIZED:  # a function, whose caller handles its errors
            return True
        if _is_in_try(frame):
            return False
        if frame.f_code.co_name == "<module>" and not imported:
            if not _is_imported(frame):
                return False
            imported = True
        frame = _frame_outside(frame.f_back)
    return imported


def is_importing() -> bool:
    """Return whether the caller's caller is called by the body of an imported module."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_name == "<module>":
            return _is_imported(frame)
        frame = frame.f_back
    return False


def _frame_outside(frame: FrameType | None) -> FrameType | None:
    """Return the next frame that is neither of Python's import nor of the alias."""
    while frame is not None and frame.f_globals.get("__name__", "").startswith(("importlib", _HERE)):
        frame = frame.f_back
    return frame


def _is_imported(frame: FrameType) -> bool:
    return getattr(frame.f_globals.get("__spec__"), "_initializing", False)  # importlib sets it for its imports


def _is_in_try(frame: FrameType) -> bool:
    """Return whether a frame is in a ``try`` block; those of ``with`` keep the last instruction."""
    entries = dis.Bytecode(frame.f_code).exception_entries
    return any(one.start <= frame.f_lasti < one.end and not one.lasti for one in entries)


class MissingPlaceholder:
    """Placeholder for a missing name; any use but a mention raises an error with the name.

    It may be a base class, part of a union of types, an argument of ``isinstance`` (which nothing is), a decorator of
    something in a module that is being imported, and has attributes, which are missing too.
    """

    def __init__(self, name: str, peer: str) -> None:
        self.__dict__.update(_name=name, _peer=peer)

    def _error(self) -> UnknownNameError:
        return UnknownNameError(
            f"{self._name}",
            "a placeholder: the name is absent, and a library mentions it, or the alias has lazy=True",
            f"sbpjax has nothing under this name of {self._peer}",
            f"see {page_of(self._peer)} for the names that exist",
            name=self._name.rpartition(".")[2],
            obj=self,
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return MissingPlaceholder(f"{self._name}.{name}", self._peer)

    def __call__(self, *args, **kwargs):
        if is_importing():
            return MissingPlaceholder(f"{self._name}(...)", self._peer)
        raise self._error()

    def __getitem__(self, key: Any) -> Any:
        return self

    def __iter__(self):
        raise self._error()

    def __mro_entries__(self, bases) -> tuple:
        error = self._error

        def __init__(self, *args, **kwargs):
            raise error()

        return (type(self._name.rpartition(".")[2], (), {"__init__": __init__}),)

    def __or__(self, other) -> Any:
        return Any

    __ror__ = __or__

    def __instancecheck__(self, instance) -> bool:
        return False

    def __subclasscheck__(self, subclass) -> bool:
        return False

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return f"<missing {self._name}>"
