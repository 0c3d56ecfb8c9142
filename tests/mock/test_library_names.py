"""Every name of PyTorch in ``names.txt`` resolves: what model libraries import, and what PyTorch's modules define.

The file says, per module, the names, without what they are.
"""

import importlib
from pathlib import Path

import pytest

from sbpjax import mock_torch


def _modules():
    """Return the names by module; a line that is set in goes on with the one before."""
    found, module = {}, ""
    for line in (Path(__file__).parent / "names.txt").read_text().splitlines():
        head, colon, rest = line.partition(":")
        if colon and not line.startswith(" "):
            module, line = head, rest
        found.setdefault(module, []).extend(line.split())
    return found


NAMES = _modules()


def _places(path):
    """Return what a dotted path leads to: a module, and what lies under its name in another."""
    found = []
    try:
        found.append(importlib.import_module(path))
    except ImportError:
        pass
    parent, _, name = path.rpartition(".")
    return found + [getattr(place, name) for place in (_places(parent) if parent else []) if hasattr(place, name)]


@pytest.mark.parametrize("module", NAMES)
def test_names_resolve(module):
    with mock_torch.enable():
        missing = [name for name in NAMES[module] if not _places(f"{module}.{name}")]
    assert not missing
