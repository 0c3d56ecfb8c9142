"""`torch.cuda.amp`: small names beside autocasting."""

from __future__ import annotations

import enum

from sbpjax import cuda


class OptState(enum.Enum):
    """What a scaler has done with an optimizer's gradients in this step."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def amp_definitely_not_available() -> bool:
    """Return whether there is no GPU."""
    return not cuda.is_available()
