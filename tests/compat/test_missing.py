"""Names that a library mentions while it is imported: placeholders, where nothing handles an error."""

import importlib
import sys

import pytest

from sbpjax import mock_torch

LIBRARY = """
import torch
import torch._absent.module
from torch._absent.module import mark
from torch.serialization import no_such_type

def make():
    from torch._absent import inner
    return inner

inner = make()

class Derived(torch.NoSuchBase):
    flag: torch.no_such_flag

@torch.no_such_space.decorate(3)
def decorated(x: no_such_type | None):
    return x

def at_runtime():
    return torch.no_such_function
"""
PROTECTED = """
try:
    import torch
    from torch.serialization import no_such_type
    found = True
except ImportError:
    found = False
found = found or hasattr(torch, "no_such_function") or getattr(torch, "no_such_function", False)
"""


@pytest.fixture
def library(tmp_path, monkeypatch):
    """Return a function that writes modules, and imports the last one under the alias."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def imported(**texts):
        for name, text in texts.items():
            (tmp_path / f"{name}.py").write_text(text)
        importlib.invalidate_caches()
        return importlib.import_module(name)

    with mock_torch.enable():
        yield imported
    for name in [name for name in sys.modules if name.startswith("mention")]:
        del sys.modules[name]


def test_mentions_of_an_imported_library_raise_when_used(library):
    found = library(mentions=LIBRARY)
    for use in (found.mark, found.inner, found.Derived, found.decorated, found.at_runtime):
        with pytest.raises(AttributeError, match="no_such|NoSuch|_absent"):
            use()


def test_a_name_within_try_or_asked_for_is_missing_at_once(library):
    assert not library(mention_protected=PROTECTED).found


def test_a_library_imported_within_try_is_missing_at_once(library):
    text = "try:\n    import mention_inner\nexcept ImportError:\n    mention_inner = None\n"
    assert library(mention_inner=LIBRARY, mention_outer=text).mention_inner is None


def test_a_function_asks_at_once_when_nothing_is_imported(library):
    with pytest.raises(AttributeError, match="no_such_function"):
        library(mentions=LIBRARY).at_runtime()
