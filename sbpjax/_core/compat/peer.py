"""`Peer`: a foreign package name, its table of sbpjax modules, and the switch of ``sys.modules``.

While a peer is enabled, its finder is first in ``sys.meta_path`` and the real package, if it was loaded, is set aside
with all its submodules. Afterwards ``sys.modules`` holds the real package again, and modules that were imported in the
meantime and use the alias (a model library, for example) are set aside until the next time: outside, nothing has
changed.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.metadata
import sys
from collections.abc import Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from types import FrameType, ModuleType

from sbpjax._core import naming
from sbpjax.errors import UnknownModuleError

from .alias import Alias
from .missing import is_mention, page_of


class Peer(MetaPathFinder, Loader):
    """A package whose name sbpjax can answer to.

    Args:
        name: the package, e.g. ``"torch"``.
        table: for modules with another place in sbpjax the modules that answer, in the order of the search.
        version: the result of ``importlib.metadata.version(name)`` while enabled.
        gone_through: modules whose ``__dict__`` libraries go through, so that their names are looked up on import.
        refused: of modules of other packages that need the real one, the reason and the replacement.
    """

    _is_followed = True  # while enabled, sbpjax prints this name and behaves like this package

    def __init__(
        self,
        name: str,
        table: Mapping[str, tuple[str, ...]],
        version: str,
        gone_through: tuple[str, ...] = (),
        refused: Mapping[str, tuple[str, str]] | None = None,
    ) -> None:
        self.name = name
        self.table = dict(table)
        self.gone_through = gone_through
        self.refused = dict(refused or {})
        self.version = version
        self.depth = 0
        self.lazy = False
        self.verbose = False
        self._own: dict[str, ModuleType] = {}  # aliases, and modules that use them, while the peer is not enabled
        self._real: dict[str, ModuleType] = {}  # the real package while it is
        self._before: set[str] = set()
        self._further: list[FurtherPeer] = []
        self._bound: list[dict] = []  # the globals of scripts that held the real package and hold the alias
        self._sources: dict[str, tuple[str, ...]] = {}

    # -- names -----------------------------------------------------------------------------------------------------

    def sources_of(self, full: str) -> tuple[str, ...]:
        """Return the modules of sbpjax that answer to a module's name; empty if there is none."""
        found = self._sources.get(full)
        if found is None:
            found = self.table.get(full)
            if found is None:
                found = tuple(filter(None, [self._find_child_module(full)]))
            self._sources[full] = found
        return found

    def _find_child_module(self, full: str) -> str | None:
        """Return the module of sbpjax under the parent's sources for ``full``, at the same relative path."""
        parent, _, last = full.rpartition(".")
        if not parent:
            return "sbpjax"
        for source in self.sources_of(parent):
            module = importlib.import_module(source)
            found = module.__dict__.get(last)
            if isinstance(found, ModuleType):
                return found.__name__ if not isinstance(found, Alias) else None
            if found is None and hasattr(module, "__path__"):
                name = f"{module.__name__}.{last}"
                try:
                    importlib.import_module(name)
                except ModuleNotFoundError as error:
                    if error.name != name:
                        raise
                else:
                    return name
        if last[0].isupper():  # a class, which importing as a module would hide
            return None
        for source in self.sources_of(parent):
            if hasattr(vars(importlib.import_module(source)).get("__getattr__"), "covers_submodules"):
                return source
        return None

    def module(self, full: str) -> Alias:
        """Return the alias of a name, made on first use."""
        found = self._own.get(full)
        if not isinstance(found, Alias):
            found = self._own[full] = Alias(full, self.sources_of(full), self)
        return found

    def _log(self, text: str) -> None:
        """Print progress, in verbose mode."""
        if self.verbose:
            print(f"sbpjax as {self.name}: {text}")

    # -- the finder and loader of Python's import ------------------------------------------------------------------

    def find_spec(self, fullname: str, path=None, target=None):
        """Find the modules of the peer; other packages are none of its business."""
        if fullname in self.refused and not _is_probed():
            seen = f"a library that needs {self.name} itself"
            raise UnknownModuleError(f"import {fullname}", seen, *self.refused[fullname], name=fullname)
        if fullname != self.name and not fullname.startswith(f"{self.name}."):
            return None
        if not self.sources_of(fullname):
            if not (self.lazy or is_mention()):
                raise UnknownModuleError(
                    f"import {fullname}",
                    "no module of sbpjax answers to this name",
                    f"under the name {self.name!r} are the names of sbpjax",
                    f"see {page_of(self.name)} for the names that exist",
                    name=fullname,
                )
            self._log(f"{fullname} is missing; an empty module takes its place")
        return importlib.machinery.ModuleSpec(fullname, self, origin="sbpjax", is_package=True)

    def create_module(self, spec):
        """Return the alias itself: nothing is executed."""
        return self.module(spec.name)

    def exec_module(self, module) -> None:
        """Look up the names of a module that is gone through; an alias has no code."""
        if module.__name__ in self.gone_through:
            for source in self.sources_of(module.__name__):
                for name, value in vars(importlib.import_module(source)).items():
                    if callable(value) and not name.startswith("_"):
                        getattr(module, name)

    def find_distributions(self, context=None):
        """Answer ``importlib.metadata.version`` with the alias's version."""
        if context is not None and getattr(context, "name", None) == self.name:
            yield _Distribution(self.name, self.version)

    # -- the switch ------------------------------------------------------------------------------------------------

    @property
    def is_enabled(self) -> bool:
        """Whether imports of the peer's name resolve here now."""
        return self.depth > 0

    @property
    def was_enabled(self) -> bool:
        """Whether imports of the peer's name have resolved here before in this process."""
        return bool(self._own)

    def enable(self, packages: tuple[str, ...] = ()) -> None:
        """Resolve imports here, and set the real package aside, and those in ``packages``, which have used it."""
        self.depth += 1
        if self.depth > 1:
            self._bind(_globals_of_caller())
            return
        self._real = _pop_modules(lambda name: _is_in(name, (self.name, *packages)))
        self._before = set(sys.modules)
        sys.modules.update(self._own)
        sys.meta_path.insert(0, self)
        if self._is_followed:
            naming.push_name(self.name)
        for other in self._further:
            other.enable()
        importlib.invalidate_caches()
        self._bind(_globals_of_caller())

    def _bind(self, space: dict) -> None:
        """Let a script's global that is the real package be the alias: ``import torch`` may come before `enable`."""
        real = self._real.get(self.name)
        if real is not None and space.get(self.name) is real:
            space[self.name] = importlib.import_module(self.name)
            self._bound.append(space)

    def disable(self) -> None:
        """Put everything back, when called as often as `enable` was."""
        if not self.depth:
            return
        self.depth -= 1
        if self.depth:
            return
        for other in self._further:
            other.disable()
        sys.meta_path.remove(self)
        if self._is_followed:
            naming.remove_name(self.name)
        users = self._users()
        self._own.update(_pop_modules(lambda name: _is_in(name, (self.name,)) or name in users))
        sys.modules.update(self._real)
        for space in self._bound:
            if isinstance(space.get(self.name), Alias):
                space[self.name] = self._real[self.name]
        self._bound, self._real = [], {}

    def add_further(self, others: Sequence[FurtherPeer]) -> None:
        """Answer for other packages too, whenever this peer is enabled."""
        self._further += others
        if self.is_enabled:
            for other in others:
                other.enable()

    def remove_further(self, others: Sequence[FurtherPeer]) -> None:
        """Stop answering for other packages."""
        for other in others:
            self._further.remove(other)
            other.disable()

    def _users(self) -> set[str]:
        """Return the modules, imported since `enable`, of packages that use the alias."""
        fresh = [name for name in sys.modules if name not in self._before and not _is_in(name, (self.name, "sbpjax"))]
        touched = {name.partition(".")[0] for name in fresh if _uses_alias(sys.modules[name])} - {"__main__"}
        return {name for name in fresh if name.partition(".")[0] in touched}


class FurtherPeer(Peer):
    """A package beside another peer; that one decides about names and behaviour, and sets aside what uses both."""

    _is_followed = False

    def _users(self) -> set[str]:
        return set()


def _is_probed() -> bool:
    """Return whether `importlib.util.find_spec` searches a module: whether it is installed is another question."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and str(frame.f_globals.get("__name__")).startswith("importlib._bootstrap"):
        frame = frame.f_back
    return frame is not None and frame.f_globals.get("__name__") == "importlib.util"


def _globals_of_caller() -> dict:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in ("sbpjax", "contextlib"):
        frame = frame.f_back
    return {} if frame is None else frame.f_globals


def _is_in(name: str, packages: tuple[str, ...]) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def _pop_modules(wanted) -> dict[str, ModuleType]:
    return {name: sys.modules.pop(name) for name in list(sys.modules) if wanted(name)}


def _uses_alias(module) -> bool:
    fields = getattr(module, "__dict__", None) or {}
    for value in list(fields.values()):
        if isinstance(value, Alias):
            return True
        if str(getattr(type(value) if not isinstance(value, type) else value, "__module__", "")).startswith("sbpjax."):
            return True
    return False


class _Distribution(importlib.metadata.Distribution):
    """The metadata of a package that sbpjax answers for."""

    def __init__(self, name: str, version: str) -> None:
        self._text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"

    def read_text(self, filename: str) -> str | None:
        """Return the text of ``METADATA``; there are no other files."""
        return self._text if filename == "METADATA" else None

    def locate_file(self, path):
        """Return nothing: no file belongs to the distribution."""
        raise FileNotFoundError(path)
