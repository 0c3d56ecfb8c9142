"""GPU memory statistics of XLA's allocator; zeros without a GPU."""

from __future__ import annotations

from typing import Any

from .devices import gpu, is_available


def memory_stats(device: Any = None) -> dict[str, Any]:
    """Return the allocator's figures under PyTorch's names and XLA's own; empty without a GPU."""
    if not is_available():
        return {}
    own = dict(gpu(device, "memory_stats()").memory_stats() or {})
    used, peak = own.get("bytes_in_use", 0), own.get("peak_bytes_in_use", 0)
    reserved = own.get("pool_bytes", own.get("bytes_reserved", used))
    return own | {
        "allocated_bytes.all.current": used,
        "allocated_bytes.all.peak": peak,
        "reserved_bytes.all.current": reserved,
        "reserved_bytes.all.peak": own.get("peak_pool_bytes", max(reserved, peak)),
    }


def memory_allocated(device: Any = None) -> int:
    """Return the bytes that tensors and running programs hold."""
    return memory_stats(device).get("allocated_bytes.all.current", 0)


def max_memory_allocated(device: Any = None) -> int:
    """Return the most bytes held so far in this process."""
    return memory_stats(device).get("allocated_bytes.all.peak", 0)


def memory_reserved(device: Any = None) -> int:
    """Return the bytes that the allocator has taken from the GPU."""
    return memory_stats(device).get("reserved_bytes.all.current", 0)


def max_memory_reserved(device: Any = None) -> int:
    """Return the most bytes that the allocator had taken."""
    return memory_stats(device).get("reserved_bytes.all.peak", 0)


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Return the free and the total bytes of the part of a GPU's memory that XLA may use.

    Raises:
        NotInJaxError: there is no GPU.
    """
    own = gpu(device, "mem_get_info()").memory_stats() or {}
    total = own.get("bytes_limit", 0)
    return total - own.get("bytes_in_use", 0), total


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """Return the figures as text."""
    stats = memory_stats(device)
    return "\n".join(f"{name:<40} {value:>16}" for name, value in sorted(stats.items())) or "no GPU"


def empty_cache() -> None:
    """Do nothing: XLA's allocator keeps one pool, which its programs share."""


def ipc_collect() -> None:
    """Do nothing: no memory is shared with other processes."""


def reset_peak_memory_stats(device: Any = None) -> None:
    """Do nothing: XLA counts the peak since the start of the process."""


def reset_max_memory_allocated(device: Any = None) -> None:
    """Do nothing, as `reset_peak_memory_stats`."""


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Do nothing: set ``XLA_PYTHON_CLIENT_MEM_FRACTION`` before the start instead."""
