"""`torch.xpu`, `torch.mps`, `torch.mtia`: device kinds without a JAX backend here."""

from __future__ import annotations

from .absent import absences


def is_available() -> bool:
    """Return False."""
    return False


is_initialized = is_bf16_supported = is_current_stream_capturing = is_available


def device_count() -> int:
    """Return 0."""
    return 0


memory_allocated = max_memory_allocated = memory_reserved = max_memory_reserved = device_count
current_allocated_memory = driver_allocated_memory = recommended_max_memory = device_count


def empty_cache() -> None:
    """Do nothing: there is no memory of it."""


synchronize = reset_peak_memory_stats = reset_max_memory_allocated = init = empty_cache


__getattr__ = absences("torch.xpu", "there is no device of this kind", "if torch.xpu.is_available(): ...")
