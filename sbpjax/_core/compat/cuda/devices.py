"""GPU devices: count, properties, current device, synchronisation."""

from __future__ import annotations

import importlib.util
from types import SimpleNamespace
from typing import Any

import jax

from sbpjax._core.runtime import processes
from sbpjax._core.tensor.handle.device import device as Device
from sbpjax._core.tensor.handle.device import local_device_number
from sbpjax.distributed.env import devices_started
from sbpjax.errors import NotInJaxError, PlacementError
from sbpjax.sbp.placement import PLATFORM

_PLUGINS = ("jax_cuda12_plugin", "jax_cuda13_plugin", "jax_rocm60_plugin", "jax_rocm7_plugin")


def _gpus() -> list:
    """Return JAX's GPUs of this process; starts the devices only if some could be there."""
    if PLATFORM["cuda"] == "gpu" and not devices_started():
        config: Any = jax.config
        wanted = config.jax_platforms
        if wanted and not {"cuda", "gpu", "rocm"} & set(wanted.split(",")):
            return []
        if not any(importlib.util.find_spec(plugin) for plugin in _PLUGINS):
            return []
    try:
        return jax.local_devices(backend=PLATFORM["cuda"])
    except RuntimeError:
        return []


def is_available() -> bool:
    """Return whether JAX has a GPU."""
    return bool(_gpus())


def device_count() -> int:
    """Return the number of GPUs that the processes on this machine have, as PyTorch counts them."""
    own, world = len(_gpus()), processes.current()
    return min(own * (world.size // world.nodes), len(jax.devices(PLATFORM["cuda"]))) if own else 0


def is_initialized() -> bool:
    """Return whether the GPUs are started."""
    return devices_started() and is_available()


def init() -> None:
    """Do nothing: JAX starts its devices when they are first used."""


_current = 0


def current_device() -> int:
    """Return the index of the GPU chosen by `set_device`; 0 at first."""
    _raise_if_no_gpu("current_device()")
    return _current


def set_device(device: Any) -> None:
    """Set the result of `current_device`; new tensors go to their ``device=``, as ever."""
    global _current
    _current = _index(device)


class device:
    """Make a GPU the current one within a block.

    Args:
        device: its index, a name, or None for the present one.
    """

    def __init__(self, device: Any) -> None:
        self.idx = None if device is None else _index(device)

    def __enter__(self) -> device:
        global _current
        self._before = _current
        _current = _current if self.idx is None else self.idx
        return self

    def __exit__(self, *error: Any) -> None:
        global _current
        _current = self._before


def synchronize(device: Any = None) -> None:
    """Wait until everything that was launched has run; without a GPU, the work of the CPU."""
    for each in jax.local_devices():
        jax.device_put(0, each).block_until_ready()


def get_device_name(device: Any = None) -> str:
    """Return the name of a GPU, e.g. ``"NVIDIA H200"``."""
    return gpu(device, "get_device_name()").device_kind


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """Return the compute capability of a GPU, e.g. ``(9, 0)``."""
    major, _, minor = str(gpu(device, "get_device_capability()").compute_capability).partition(".")
    return int(major), int(minor or 0)


def get_device_properties(device: Any = None) -> SimpleNamespace:
    """Return name, ``major`` and ``minor`` capability, ``total_memory`` in bytes and ``multi_processor_count``."""
    found = gpu(device, "get_device_properties()")
    major, minor = get_device_capability(device)
    total = (found.memory_stats() or {}).get("bytes_limit", 0)
    cores = getattr(found, "core_count", 0)
    return SimpleNamespace(
        name=found.device_kind, major=major, minor=minor, total_memory=total, multi_processor_count=cores
    )


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Return whether the GPU computes in bfloat16."""
    return is_available() and (including_emulation or get_device_capability() >= (8, 0))


def get_arch_list() -> list[str]:
    """Return the capabilities of the GPUs here; XLA compiles for the one that is there."""
    return sorted({"sm_" + "".join(map(str, get_device_capability(i))) for i in range(device_count())})


def gpu(device: Any, operation: str) -> Any:
    """Return a GPU as JAX's device."""
    _raise_if_no_gpu(operation)
    found = _gpus()
    index = local_device_number(_current if device is None else _index(device), len(found))
    if index >= len(found):
        rule = f"GPUs have the indices 0 to {len(found) - 1}"
        raise PlacementError(f"cuda.{operation}", f"index {index}", rule, "cuda.device_count()")
    return found[index]


def _raise_if_no_gpu(operation: str) -> None:
    if not is_available():
        rule = "JAX has no GPU in this process; " + ("it was built without" if not _has_plugin() else "none was found")
        fix = "check sbpjax.cuda.is_available() first; pip install 'jax[cuda12]' brings JAX the GPUs of a machine"
        raise NotInJaxError(f"cuda.{operation}", "no GPU", rule, fix)


def _has_plugin() -> bool:
    return any(importlib.util.find_spec(plugin) for plugin in _PLUGINS)


def _index(device: Any) -> int:
    if isinstance(device, int):
        return device
    return Device(device).index or 0
