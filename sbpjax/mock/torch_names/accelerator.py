"""`torch.accelerator`: the devices that are not the CPU, whatever their kind."""

from __future__ import annotations

import jax

from sbpjax.tensor.device import device


def is_available() -> bool:
    """Return whether JAX has devices other than the CPU."""
    return jax.default_backend() != "cpu"


def device_count() -> int:
    """Return how many there are on this process."""
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


def memory_allocated(device=None) -> int:
    """Return the bytes in use on a device, 0 where that is not known."""
    from sbpjax import cuda

    return cuda.memory_allocated(device) if cuda.is_available() else 0


def max_memory_allocated(device=None) -> int:
    """Return the most bytes that were in use on a device, 0 where that is not known."""
    from sbpjax import cuda

    return cuda.max_memory_allocated(device) if cuda.is_available() else 0


def get_memory_info(device=None) -> tuple[int, int]:
    """Return the free and all bytes of a device."""
    from sbpjax import cuda

    return cuda.mem_get_info(device)


def reset_peak_memory_stats(device=None) -> None:
    """Do nothing: JAX counts from the start of the process."""


def set_device_index(device) -> None:
    """Do nothing: layouts say where tensors are."""


set_device_idx = set_device_index
