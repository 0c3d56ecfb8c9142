"""Ahead-of-time compilation for a topology: placements over TPU or GPU devices that this machine lacks.

    p = placement.topology("v5p:4x4x4", [8, 8])        # 64 TPU chips, by libtpu's compiler
    p = placement.topology("2*v5e:2x4", [2, 2, 4])     # two slices of 8 chips, joined by the data-centre network
    p = placement.topology("h100:8", [2, 4])           # 8 GPUs of one node, by XLA's GPU compiler

A 70B model on 64 chips is sized on a laptop: tensors on such a placement are abstract (`sbpjax.abstract`), a program of
them is traced, planned and compiled as usual, and its memory and collectives can be read; it cannot run. TPU needs the
wheel ``libtpu``, GPU the wheels ``jax-cuda12-plugin`` and ``jax-cuda12-pjrt`` (the extra ``aot``); no driver, no
device.

Ranks are positions in the list of the topology's devices. A hierarchy alone arranges them as
`jax.experimental.mesh_utils` would, so that neighbours on a mesh axis are neighbours in the machine; slices are
outermost.
"""

from __future__ import annotations

import functools
import glob
import importlib.util
import math
import os
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from sbpjax._core.jax_private import skip_cache
from sbpjax._core.runtime.optional_packages import LazyModule, pip_install
from sbpjax.errors import PlacementError

mesh_utils = LazyModule("jax.experimental.mesh_utils")
topologies = LazyModule("jax.experimental.topologies")


_TPU = ("v2", "v3", "v4", "v5e", "v5litepod", "v5p", "v6e", "7x", "tpu7x")
_FIX = 'e.g. placement.topology("v5p:4x4x4", [8, 8]) or placement.topology("h100:8", [2, 4])'


@dataclass(frozen=True)
class Gpu:
    """The properties of a GPU for XLA's compiler; the numbers are those of the data sheets.

    Attributes:
        name: as reported by the driver.
        capability: the compute capability.
        cores: multiprocessors.
        lanes: float32 units of one.
        clock_ghz: the highest clock.
        memory_bytes: the size of the memory.
        memory_bytes_per_s: its bandwidth.
        cache_bytes: the size of the second-level cache.
        shared_bytes: shared memory of one multiprocessor; a block may have 1 KiB less.
    """

    name: str
    capability: tuple[int, int]
    cores: int
    lanes: int
    clock_ghz: float
    memory_bytes: int
    memory_bytes_per_s: int
    cache_bytes: int
    shared_bytes: int

    def target(self) -> str:
        """Return XLA's description of the GPU, in its text form."""
        return f"""gpu_device_info {{
  threads_per_block_limit: 1024
  threads_per_warp: 32
  shared_memory_per_block: 49152
  shared_memory_per_core: {self.shared_bytes}
  threads_per_core_limit: 2048
  core_count: {self.cores}
  fpus_per_core: {self.lanes}
  block_dim_limit_x: 2147483647
  block_dim_limit_y: 65535
  block_dim_limit_z: 65535
  memory_bandwidth: {self.memory_bytes_per_s}
  l2_cache_size: {self.cache_bytes}
  clock_rate_ghz: {self.clock_ghz}
  device_memory_size: {self.memory_bytes}
  shared_memory_per_block_optin: {self.shared_bytes - 1024}
  cuda_compute_capability {{ major: {self.capability[0]} minor: {self.capability[1]} }}
  registers_per_core_limit: 65536
  registers_per_block_limit: 65536
}}
platform_name: "CUDA"
dnn_version_info {{ major: 9 minor: 8 }}
device_description_str: "{self.name}"
"""


_MIB = 1 << 20
GPUS = {
    "a100": Gpu(
        "NVIDIA A100-SXM4-80GB", (8, 0), 108, 64, 1.41, 81_920 * _MIB, 2_039 * 10**9, 40 * _MIB, 164 * 1024
    ),
    "h100": Gpu(
        "NVIDIA H100 80GB HBM3", (9, 0), 132, 128, 1.98, 81_559 * _MIB, 3_352 * 10**9, 50 * _MIB, 228 * 1024
    ),
    "h200": Gpu("NVIDIA H200", (9, 0), 132, 128, 1.98, 143_771 * _MIB, 4_800 * 10**9, 50 * _MIB, 228 * 1024),
}  # fmt: skip


def kind_of(name: str) -> str:
    """Return the chip's kind of a topology's name: ``"v5p"`` of ``"v5p:4x4x4"`` and of ``"2*v5p:4x4x4"``."""
    return name.partition(":")[0].rpartition("*")[2].lower()


def slices_of(name: str) -> int:
    """Return the number of slices of a topology's name: 2 of ``"2*v5p:4x4x4"``."""
    count = name.rpartition("*")[0]
    return int(count) if count.isdecimal() and int(count) > 0 else 1


@functools.cache
def devices(name: str) -> tuple:
    """Return the compile-only devices of a topology; the same objects every time, so that placements compare equal.

    Raises:
        PlacementError: no such topology, or the compiler's wheel is missing.
    """
    kind, size = kind_of(name), name.partition(":")[2]
    if kind in GPUS:
        if "*" in name:
            rule = "GPU nodes are joined by the network of nodes×devices; slices are of TPUs"
            raise _error(name, f"slices of {kind}", rule)
        found = _gpu_devices(name, GPUS[kind], size)
    elif kind in _TPU:
        found = _tpu_devices(name)
    else:
        known = ", ".join([*GPUS, *_TPU])
        raise _error(name, f"kind {kind!r}", f"a topology is kind:size, the kind one of {known}")
    skip_cache(found[0].client)  # JAX 0.10 writes their programs, and then warns that it cannot read them back
    return tuple(found)


def arrange_ranks(name: str, hierarchy: Iterable[int] | None) -> np.ndarray:
    """Return the ranks of a topology in a grid of a hierarchy, neighbours in the machine next to each other.

    Raises:
        PlacementError: the hierarchy has another number of devices, or its outer axes cut through slices.
    """
    found = devices(name)
    shape = (len(found),) if hierarchy is None else tuple(int(n) for n in hierarchy)
    if math.prod(shape) != len(found) or not shape or min(shape) < 1:
        product = " × ".join(map(str, shape)) or "nothing"
        raise PlacementError(
            f"placement.topology({name!r}, {list(shape)})",
            f"a hierarchy of {product} = {math.prod(shape)} ranks",
            f"{name} has {len(found)} devices, and the hierarchy's sizes multiply to that",
            f"placement.topology({name!r}, [{len(found)}])",
        )
    listed = np.arange(len(found)).reshape(shape)
    if found[0].platform == "gpu":
        return listed
    slices = slices_of(name)
    chips = len(found) // slices
    rank = {d: i for i, d in enumerate(found[:chips])}
    try:
        inner = _shape_of_slice(name, shape, slices)
        grid = mesh_utils.create_device_mesh(inner, list(rank), allow_split_physical_axes=True)
    except (NotImplementedError, ValueError, AssertionError):  # no arrangement is known for this shape: as listed
        return listed
    first = np.vectorize(rank.__getitem__, otypes=[np.int64])(grid).reshape(-1)
    return (np.arange(slices)[:, None] * chips + first).reshape(shape)


def _shape_of_slice(name: str, shape: tuple[int, ...], slices: int) -> tuple[int, ...]:
    """Return the part of a hierarchy that is within a slice: ``(1, 2, 4)`` of ``(2, 2, 4)`` with two slices."""
    inner, left = [], slices
    for size in shape:
        if max(size, left) % min(size, left):
            seen, rule = f"{slices} slices in a hierarchy {list(shape)}", "outer axes hold whole slices"
            raise _error(name, seen, f"{rule}: {size} and {left} do not divide")
        inner.append(max(size // left, 1))
        left = max(left // size, 1)
    return tuple(inner)


def _tpu_devices(name: str):
    if importlib.util.find_spec("libtpu") is None:
        raise _missing_wheel_error(name, "libtpu", "the TPU compiler")
    if not glob.glob("/dev/accel*"):  # on a machine without TPUs: do not query the cloud for this machine's type
        for variable, value in _TPU_ENVIRONMENT.items():
            os.environ.setdefault(variable, value)
    try:
        count, star, slice_name = name.rpartition("*")
        several = {"num_slices": int(count)} if star else {}
        return topologies.get_topology_desc(platform="tpu", topology_name=slice_name, **several).devices
    except Exception as error:
        raise _error(
            name, _first_line(error), "the TPU compiler knows the topology, e.g. v5p:2x2x1, v6e:16x16"
        ) from error


_TPU_ENVIRONMENT = {
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_ACCELERATOR_TYPE": "v5p-8",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",  # compiling takes no device, so several processes may
}


_CUDA = (12, 13)  # the versions that JAX has plugins for


def _gpu_devices(name: str, gpu: Gpu, size: str):
    sizes = size.split("x")
    if not 1 <= len(sizes) <= 2 or not all(s.isdecimal() and int(s) > 0 for s in sizes):
        raise _error(name, f"size {size!r}", "a GPU topology is kind:devices or kind:nodes×devices, e.g. h100:2x8")
    version = next(
        (n for n in _CUDA if _is_installed(f"jax_cuda{n}_plugin") and _is_installed(f"jax_plugins.xla_cuda{n}")), None
    )
    if version is None:
        raise _missing_wheel_error(name, "jax-cuda12-plugin and jax-cuda12-pjrt", "the GPU compiler")
    nodes, each = ("1", *sizes)[-2:]

    def make_devices():
        return topologies.get_topology_desc(
            platform="cuda", topology_name="", topology=f"{nodes}x1x{each}", target_config=gpu.target()
        ).devices

    if not glob.glob("/dev/nvidia*"):  # the plugin would look for CUDA's libraries, which compiling does not need
        os.environ.setdefault("JAX_SKIP_CUDA_CONSTRAINTS_CHECK", "1")
    try:
        try:
            return make_devices()
        except NotImplementedError:  # JAX has started before, and that look has failed
            importlib.import_module(f"jax_plugins.xla_cuda{version}").initialize()
            return make_devices()
    except Exception as error:
        raise _error(name, _first_line(error), "the GPU compiler makes the topology") from error


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _first_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"


def _error(name: str, seen: str, rule: str) -> PlacementError:
    return PlacementError(f"placement.topology({name!r})", seen, rule, _FIX)


def _missing_wheel_error(name: str, wheel: str, label: str) -> PlacementError:
    return PlacementError(
        f"placement.topology({name!r})",
        f"no {wheel} in this environment",
        f"programs for absent devices are compiled by {label}, which is in {wheel} (the extra `aot`)",
        pip_install("aot"),
    )
