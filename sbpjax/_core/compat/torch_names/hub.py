"""`torch.hub`: a private name by which libraries find the folder of downloads."""

from __future__ import annotations

import os

from sbpjax._core.compat import hub


def _get_torch_home() -> str:
    """Return the directory that holds ``hub``."""
    return os.path.dirname(hub.get_dir())
