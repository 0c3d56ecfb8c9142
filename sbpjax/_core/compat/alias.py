"""`Alias`: a module with a foreign name whose attributes are looked up in sbpjax lazily, one by one.

``torch.nn.functional`` under `sbpjax.mock_torch` is ``Alias("torch.nn.functional", ("sbpjax.nn.functional",))``. Its
``gelu`` is `sbpjax.nn.functional.gelu` itself, so ``isinstance(x, torch.Tensor)`` and ``issubclass(M, nn.Module)`` are
plain Python. A name that no source has is an error with its full name.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType
from typing import Any

from sbpjax._core import naming
from sbpjax.errors import UnknownNameError

from .missing import MissingPlaceholder, is_mention, page_of
from .torch_names.absent import is_absent

_Feature = type(annotations)
_OWN = frozenset({"__spec__", "__loader__", "__path__", "__package__", "__file__", "__name__", "__doc__"})


class Alias(ModuleType):
    """A module that replaces some modules of sbpjax.

    ``sources``: the modules in which names are looked up, first found first.
    """

    def __init__(self, name: str, sources: tuple[str, ...], peer) -> None:
        super().__init__(name, f"{name}, answered by sbpjax ({', '.join(sources)}).")
        self.__dict__.update(
            _sources=sources,
            _peer=peer,
            __path__=[],
            __file__=str(Path(naming.__file__).with_name("__init__.py")),
            __package__=name,
        )

    def __getattr__(self, name: str) -> Any:
        """Return the first source's attribute; functions and classes are kept, since they do not change."""
        fields = self.__dict__
        peer = fields["_peer"]
        if name == "__version__" and self.__name__ in (peer.name, f"{peer.name}.version"):
            return peer.version
        for source in fields["_sources"]:
            try:
                value = getattr(importlib.import_module(source), name)
            except AttributeError:
                continue
            if isinstance(value, _Feature):
                continue  # of the source's own ``from __future__ import annotations``
            if isinstance(value, ModuleType):
                break  # also modules go by the peer's names
            if is_absent(value) and f"{self.__name__}.{name}" in peer.table:
                continue  # of a module under which every name is absent
            if callable(value):
                fields[name] = value
            return value
        if name == "__all__":
            return [n for n in dir(self) if not n.startswith("_")]
        full = f"{self.__name__}.{name}"
        if full in peer.table or not (name.startswith("__") and name.endswith("__")):
            if peer.sources_of(full):
                return importlib.import_module(full) if peer.is_enabled else peer.module(full)
            if peer.lazy or is_mention():
                peer._log(f"{full} is missing; a placeholder takes its place until its first use")
                return MissingPlaceholder(full, peer.name)
        raise UnknownNameError(
            f"{full}",
            f"no such name in {', '.join(fields['_sources']) or 'an empty module'}",
            f"under the name {self.__name__!r} are the names of sbpjax",
            f"see {page_of(peer.name)} for the names that exist",
            name=name,
            obj=self,
        )

    def __setattr__(self, name: str, value: Any) -> None:
        """Set a name where it was found, as a script that switches a flag or patches a function means it.

        Importing a submodule sets its name; where that is also a function's, as `replicate` is, the function keeps it.
        """
        if isinstance(value, Alias) and value.__name__ == f"{self.__name__}.{name}" and self._names(name):
            return
        if name not in _OWN and not isinstance(value, Alias):
            for source in self.__dict__["_sources"]:
                module = importlib.import_module(source)
                if name in module.__dict__:
                    setattr(module, name, value)
                    self.__dict__.pop(name, None)
                    return
        self.__dict__[name] = value

    def _names(self, name: str) -> bool:
        """Return whether a name is that of something other than a module."""
        for source in self.__dict__["_sources"]:
            found = getattr(importlib.import_module(source), name, None)
            if found is not None and not isinstance(found, _Feature) and not is_absent(found):
                return not isinstance(found, ModuleType)
        return False

    def __dir__(self) -> list[str]:
        names = {n for n in self.__dict__ if not n.startswith("_")}
        for source in self.__dict__["_sources"]:
            module = importlib.import_module(source)
            names.update(n for n in dir(module) if not n.startswith("__") and n != "annotations")
        return sorted(names)

    def __repr__(self) -> str:
        return f"<module {self.__name__!r} (sbpjax)>"
