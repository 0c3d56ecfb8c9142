"""`torch.autograd`: names beside the tape, which is `sbpjax.autograd`."""

from __future__ import annotations

import contextlib
from typing import Any

_anomaly = False


class set_detect_anomaly(contextlib.ContextDecorator):
    """Keep a setting, as a call or for a block, without effect: ``jax.debug_nans(True)`` finds where a NaN comes from.

    Args:
        mode: the setting.
        check_nan: accepted.
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        global _anomaly
        self._before, _anomaly = _anomaly, bool(mode)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: Any) -> None:
        global _anomaly
        _anomaly = self._before


class detect_anomaly(set_detect_anomaly):
    """Keep the setting on for a block.

    Args:
        check_nan: accepted.
    """

    def __init__(self, check_nan: bool = True) -> None:
        super().__init__(True, check_nan)


def is_anomaly_enabled() -> bool:
    """Return the setting."""
    return _anomaly
