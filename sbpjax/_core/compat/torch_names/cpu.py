"""`torch.cpu`: the CPU under the names of accelerators."""

from __future__ import annotations

import contextlib
from typing import Any

import jax


def is_available() -> bool:
    """Return True."""
    return True


is_initialized = is_available


def device_count() -> int:
    """Return 1, as PyTorch does."""
    return 1


def current_device() -> str:
    """Return the name of the one device."""
    return "cpu"


def set_device(device: Any) -> None:
    """Do nothing: there is one."""


def synchronize(device: Any = None) -> None:
    """Wait until everything that was launched has run."""
    jax.effects_barrier()


def current_stream(device: Any = None) -> Any:
    """Return a context that does nothing."""
    return contextlib.nullcontext()


def stream(stream: Any) -> Any:
    """Return a context that does nothing."""
    return contextlib.nullcontext()
