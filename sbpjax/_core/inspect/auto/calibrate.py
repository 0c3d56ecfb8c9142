"""Measured prices: compute speed of a placement's devices, latency and bandwidth of each of its axes.

    model = calibrate(placement.all("cuda"))      # half a minute
    print(model.links)                            # a latency and a bandwidth per mesh axis

The measured figures are those that the planner multiplies with: a product of matrices and a pass over memory on all
devices at once, and per mesh axis an all-reduce of a small and of a large array. A collective is timed within a loop of
one program, long against short, so that neither the launch nor the clock counts. The result prices every later plan on
these devices.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from sbpjax._core.planner.prices import links
from sbpjax._core.planner.prices.cost import DEFAULT, PRESETS, CostModel, Link
from sbpjax._core.runtime.ambient_mesh import jit_without_mesh
from sbpjax.errors import PlacementError
from sbpjax.sbp.placement import placement as Placement

_LONG_ENOUGH_S = 0.01
_RUNS = 3
_SHORT, _LONG = 2, 10  # collectives in one run
_SMALL, _LARGE = 1 << 10, 1 << 22  # bytes of an all-reduce
_MOST_LARGE = 1 << 26


def calibrate(placement: Placement, *, remember: bool = True) -> CostModel:
    """Measure the devices of a placement, and the links of its axes.

    Args:
        placement: devices of this machine, or of all processes, which call this together.
        remember: price later plans on these devices so, in this process, if no other prices are set.

    Returns:
        The prices. Give them to `GraphConfig.set_auto_parallel_cost_model`, or leave it to ``remember``.

    Raises:
        PlacementError: the devices are not there.

    Example:
        >>> config.set_auto_parallel_cost_model(calibrate(p))
    """
    if not placement.is_present:
        raise PlacementError(
            f"calibrate({placement!r})",
            "devices of another machine",
            "only programs that run can be timed",
            "take a preset: config.set_auto_parallel_cost_model('v5p')",
        )
    known = links.of_placement(placement, links.preset_of(placement))
    compiler = PRESETS["cpu"] if placement.type == "cpu" else known
    axes = [_link(placement, axis) for axis in range(len(placement.hierarchy))]
    model = CostModel(
        f"measured {placement.type} × {placement.size}",
        _flops(placement, jnp.float32),
        _flops(placement, jnp.bfloat16),
        _memory(placement),
        known.memory_bytes if placement.type != "cpu" else DEFAULT.memory_bytes,
        min(link.bytes_per_s for link in axes),
        max(link.alpha_us for link in axes),
        combines=compiler.combines,
        links=tuple(axes) if len(axes) > 1 else (),
    )
    if remember:
        links.remember(placement, model)
    return model


def _seconds(fn: Callable, *arrays) -> float:
    """Return the median time of a compiled function; the first run warms it up."""
    jax.block_until_ready(fn(*arrays))
    times = []
    for _ in range(_RUNS):
        start = time.perf_counter()
        jax.block_until_ready(fn(*arrays))
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def _replicated_ones(placement: Placement, shape: tuple[int, ...], dtype) -> jax.Array:
    """Return ones on every device, the same."""
    sharding = NamedSharding(placement.auto_mesh, PartitionSpec())
    return jit_without_mesh(lambda: jnp.ones(shape, dtype), out_shardings=sharding)()


def _jit_per_rank(placement: Placement, fn: Callable) -> Callable:
    """Return a function that every rank runs on the whole of its arguments."""
    spec = PartitionSpec()
    return jit_without_mesh(jax.shard_map(fn, mesh=placement.auto_mesh, in_specs=spec, out_specs=spec, check_vma=False))


def _flops(placement: Placement, dtype) -> float:
    """Return the flop/s of a product of square matrices, all devices at once; the largest size that stays quick."""
    best, side = 0.0, 256
    product = _jit_per_rank(placement, lambda a: a @ a)
    while side <= 8192:
        seconds = _seconds(product, _replicated_ones(placement, (side, side), dtype))
        best = max(best, 2.0 * side**3 / seconds)
        if seconds > _LONG_ENOUGH_S:
            break
        side *= 2
    return best


def _memory(placement: Placement) -> float:
    """Return the bytes per second that a device reads and writes, all devices at once."""
    best, count = 0.0, 1 << 20
    step = _jit_per_rank(placement, lambda a: a * 1.5 + 1.0)
    while count <= 1 << 28:
        seconds = _seconds(step, _replicated_ones(placement, (count,), jnp.float32))
        best = max(best, 8.0 * count / seconds)
        if seconds > _LONG_ENOUGH_S:
            break
        count *= 4
    return best


def _link(placement: Placement, axis: int) -> Link:
    """Return latency and bandwidth of one mesh axis."""
    size = placement.hierarchy[axis]
    if size == 1:
        return Link(DEFAULT.alpha_us, DEFAULT.interconnect_bytes_per_s)
    small = _all_reduce_s(placement, axis, _SMALL)
    count = _LARGE
    while (large := _all_reduce_s(placement, axis, count)) < 20 * small and count < _MOST_LARGE:
        count *= 4
    traffic = 2 * (size - 1) / size
    seconds = max(large - small, 1e-3 * large) / (count - _SMALL)  # per byte of the array
    alpha = max(small - seconds * _SMALL, 1e-9)
    return Link(alpha * 1e6, traffic / seconds)


def _all_reduce_s(placement: Placement, axis: int, nbytes: int) -> float:
    """Return the time of one all-reduce over a mesh axis."""
    name = placement.axis_names[axis]
    x = _replicated_ones(placement, (nbytes // 4,), np.float32)
    share = 1.0 / placement.hierarchy[axis]

    def run(times: int) -> float:
        def iteration(_, y):
            return jax.lax.psum(y, name) * share

        return _seconds(_jit_per_rank(placement, lambda y: jax.lax.fori_loop(0, times, iteration, y)), x)

    short, long = run(_SHORT), run(_LONG)
    return max(long - short, 1e-2 * long) / (_LONG - _SHORT)
