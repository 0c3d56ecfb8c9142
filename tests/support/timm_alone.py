"""`import timm` where torchvision is not there, or was built for another PyTorch than is installed.

timm reads two things of torchvision when it is imported: names of image transforms, which no model needs, and a batch
norm that is never trained, which no model has by itself. Wheels of torchvision on the package index are built for CUDA,
and cannot be imported beside PyTorch for CPU. So `timm` is imported here with modules of these names in torchvision's
place, which are gone again when it is there.
"""

from __future__ import annotations

import contextlib
import importlib.util
import sys
import types
from collections.abc import Iterator

import pytest

VERSION = "1.0.31"
NAMES = """torchvision torchvision.datasets torchvision.models torchvision.ops torchvision.ops.misc
    torchvision.transforms torchvision.transforms.functional""".split()


class Nothing(type):
    """A class whose attributes are names: what the default of an argument asks of a class that is not there."""

    def __getattr__(cls, name: str) -> str:
        if name.startswith("__"):
            raise AttributeError(name)
        return name


def stand_in(name: str) -> type:
    """Return an empty class for a name of torchvision."""
    if not name[0].isupper():
        raise AttributeError(name)
    return Nothing(name, (), {})


@contextlib.contextmanager
def without_torchvision() -> Iterator[None]:
    """Answer for torchvision within the block."""
    before = {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] == "torchvision"}
    for name in NAMES:
        module = types.ModuleType(name)
        module.__path__ = []  # a package: its modules are found one by one
        module.__getattr__ = stand_in
        sys.modules[name] = module
        parent, _, last = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], last, module)
    try:
        yield
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
        sys.modules.update(before)


def timm():
    """Return the package, imported without torchvision; skip the test where it is not installed."""
    if importlib.util.find_spec("timm") is None:
        pytest.skip("timm is not installed")
    with without_torchvision():
        return importlib.import_module("timm")
