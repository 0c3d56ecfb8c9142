"""`torch.accelerator`: the devices of any kind other than CPU."""

from __future__ import annotations

import jax

from sbpjax._core.tensor.handle.device import device


def is_available() -> bool:
    """Return whether JAX has devices other than the CPU."""
    return jax.default_backend() != "cpu"


def device_count() -> int:
    """Return the number of accelerators of this process."""
    return jax.local_device_count() if is_available() else 0


def current_accelerator(check_available: bool = False) -> device | None:
    """Return the device that new tensors go to, None if that is the CPU."""
    return device(jax.local_devices()[0]) if is_available() else None


def current_device_index() -> int:
    """Return the number of the device that new tensors go to."""
    return 0


def synchronize(device=None) -> None:
    """Wait until everything that was launched has run."""
    jax.effects_barrier()


def empty_cache() -> None:
    """Do nothing: memory belongs to JAX."""


def set_device_index(device) -> None:
    """Do nothing: layouts decide where tensors are."""
