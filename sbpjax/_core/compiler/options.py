"""XLA compiler options by platform, for overlap of collectives with compute.

Without them libtpu 0.0.42 waits for every all-gather: it runs between two products. With them the product and the
gather of the next one's weight are one loop,

    %async-collective-start = fusion(...)                 # the gather begins
    %fusion.46 = fusion(...), calls=%async_collective_fusion.46      # a product, and steps of the gather
    %async-collective-done = fusion(...)

Where no weight is divided they are not set: the gathers are those of a data-parallel update then, the last thing that a
step does, and libtpu moves every product of a weight's gradient after the backward, into the loop of one of them. A GPT
on 16,384 tokens held 7.1 GB so, and 3.7 without (`benchmarks/long_context.py`).

XLA's compiler for GPUs makes every collective a pair of start and done and schedules the rest between them, so
`xla_gpu_enable_latency_hiding_scheduler` is redundant: with jax 0.10.2 it is the default. But it combines
reduce-scatters until a result has 30 MiB, on eight devices 240 MiB of gradients: those of a small model are one
collective after the whole backward. So its bound here is on the bytes sent.
"""

from __future__ import annotations

from collections.abc import Mapping

from sbpjax._core.planner.prices.cost import PRESETS
from sbpjax.sbp.placement import placement as Placement

# As Google's MaxText sets them for v5p and v6e. Look again with a new libtpu: they may become the default.
_TPU = {
    "xla_enable_async_all_gather": True,
    "xla_tpu_enable_async_collective_fusion": True,
    "xla_tpu_enable_async_collective_fusion_fuse_all_gather": True,
    "xla_tpu_enable_async_collective_fusion_multiple_steps": True,
    "xla_tpu_overlap_compute_collective_tc": True,
}


def compiler_options(
    placement: Placement | None, given: Mapping[str, object], gathers: bool = True
) -> dict[str, object] | None:
    """Return the options with which a program is compiled.

    Args:
        placement: where it runs, None on one device.
        given: the user's options, which go before those of the platform; one that is None is left to the compiler.
        gathers: whether weights are divided, and products wait for them.

    Returns:
        Names and values, None if there are none.
    """
    options: dict[str, object] = {}
    if placement is not None and placement.size > 1:
        if placement.type == "tpu":
            options = dict(_TPU) if gathers else {}
        elif placement.type in ("cuda", "gpu"):
            options = {
                "xla_gpu_enable_latency_hiding_scheduler": True,
                "xla_gpu_reduce_scatter_combine_threshold_bytes": int(PRESETS["h100"].combined_bytes // placement.size),
            }
    options.update(given)
    return {name: value for name, value in options.items() if value is not None} or None
