"""`torch._C`: the few core names that libraries mention; functions come from `sbpjax._C`."""

from __future__ import annotations

from sbpjax._core.tensor import Tensor as TensorBase
from sbpjax._core.tensor.creation.generator import Generator as Generator
from sbpjax._core.tensor.handle.device import device as device
from sbpjax._core.tensor.handle.dtype import dtype as dtype
from sbpjax._core.tensor.handle.mode import mode
from sbpjax._core.tensor.handle.size import Size as Size

_TensorBase = TensorBase


def _get_tracing_state() -> None:
    """Return None: TorchScript traces nothing here."""


def _is_tracing() -> bool:
    """Return whether a program is being traced now."""
    return mode.capture is not None


def _log_api_usage_once(*args) -> None:
    """Do nothing."""


DisableTorchFunctionSubclass = DisableTorchFunction = type(
    "DisableTorchFunction",
    (),
    {"__enter__": lambda self: self, "__exit__": lambda self, *exc: None, "__doc__": "A context that changes nothing."},
)
