"""`torch.accelerator`: the devices of any kind other than CPU."""

from __future__ import annotations

from typing import Any

import jax

from sbpjax._core.compat.cuda import devices as cuda
from sbpjax._core.tensor.handle.device import accelerator_type, device


def is_available() -> bool:
    """Return whether JAX has devices other than the CPU."""
    return accelerator_type() != "cpu"


def device_count() -> int:
    """Return the number of accelerators: GPUs of this machine, others of this process."""
    return cuda.device_count() if accelerator_type() == "cuda" else jax.local_device_count() * is_available()


def current_accelerator(check_available: bool = False) -> device | None:
    """Return the kind of device that new tensors go to, without a number; None if that is the CPU."""
    return device(accelerator_type()) if is_available() else None


def current_device_index() -> int:
    """Return the number that `set_device_index` got, 0 at first."""
    return cuda._current


def set_device_index(device: Any) -> None:
    """Set the result of `current_device_index`; new tensors go to their ``device=``, as ever."""
    cuda.set_device(device)


def device_index(device: Any) -> cuda.device:
    """Make an accelerator the current one within a block."""
    return cuda.device(device)


def synchronize(device: Any = None) -> None:
    """Wait until everything that was launched has run."""
    jax.effects_barrier()


def empty_cache() -> None:
    """Do nothing: memory belongs to JAX."""


current_device_idx, set_device_idx = current_device_index, set_device_index
