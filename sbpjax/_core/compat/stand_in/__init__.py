"""Stub modules ``torch`` and ``oneflow`` for child processes of a script under ``python -m sbpjax.run``.

A child begins with an empty interpreter without a module of the foreign name. `alias_in_subprocesses` puts a folder
with one module of that name first on the path of this process, which `multiprocessing` hands on, and of the
environment, which any other child inherits. Importing the module enables the alias, whose modules take its place.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Iterable, Iterator

from ..peer import Peer

_OPTIONS = "SBPJAX_RUN_OPTIONS"  # of sbpjax.run, for the children: words out of "lazy" and "verbose"


@contextlib.contextmanager
def alias_in_subprocesses(names: Iterable[str], lazy: bool, verbose: bool) -> Iterator[None]:
    """Within the block, processes that are started answer to the names, as this one does."""
    folders = [_folder(name) for name in names]
    variables = {
        "PYTHONPATH": os.pathsep.join([*folders, *filter(None, [os.environ.get("PYTHONPATH")])]),
        _OPTIONS: " ".join(word for word, on in (("lazy", lazy), ("verbose", verbose)) if on),
    }
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    sys.path[:0] = folders
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.__setitem__(name, value)
        for folder in folders:
            if folder in sys.path:
                sys.path.remove(folder)


def replace_stub(peer: Peer, enable: type) -> None:
    """Answer to a name from its import on; where a script switched the alias off again, import the real package."""
    del sys.modules[peer.name]
    if peer.was_enabled:
        before = list(sys.path)
        sys.path[:] = [folder for folder in before if folder != _folder(peer.name)]
        try:
            importlib.import_module(peer.name)
        finally:
            sys.path[:] = before
        return
    options = os.environ.get(_OPTIONS, "").split()
    enable("lazy" in options, "verbose" in options)
    importlib.import_module(peer.name)


def _folder(name: str) -> str:
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), f"{name}_name")
