"""`torch.nn.attention`: which kernel attention may use; there is one here, so the choice changes nothing."""

from __future__ import annotations

import contextlib
import enum


class SDPBackend(enum.IntEnum):
    """The kernels that PyTorch chooses from."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextlib.contextmanager
def sdpa_kernel(backends, set_priority: bool = False):
    """Accept a choice of kernels for a block."""
    yield {}
