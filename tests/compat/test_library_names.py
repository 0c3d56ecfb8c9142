"""Every name of PyTorch in `library_names.txt` resolves: what timm, torchvision and transformers import or mention.

`record_library_names.py` says how the list is made; it holds, per module, the names.
"""

import pytest

from sbpjax import mock_torch
from tests.compat.record_library_names import FILE, places


def _modules():
    """Return the names by module; a line that is set in goes on with the one before."""
    found, module = {}, ""
    for line in FILE.read_text().splitlines():
        head, colon, rest = line.partition(":")
        if colon and not line.startswith(" "):
            module, line = head, rest
        found.setdefault(module, []).extend(line.split())
    return found


NAMES = _modules()


@pytest.mark.parametrize("module", NAMES)
def test_names_resolve(module):
    with mock_torch.enable():
        missing = [name for name in NAMES[module] if not places(f"{module}.{name}")]
    assert not missing
