"""Settings of OneFlow's use of NCCL: accepted, kept, and without effect.

Here a collective is an operation of a compiled program: XLA fuses, schedules and overlaps them itself. `settings`
shows what was set.
"""

from __future__ import annotations

settings: dict[str, bool | int] = {}


def set_fusion_threshold_mbytes(val: int) -> None:
    """Keep the size up to which OneFlow fuses collectives."""
    settings["fusion_threshold_mbytes"] = val


def set_fusion_max_ops_num(val: int) -> None:
    """Keep the number of collectives that OneFlow fuses."""
    settings["fusion_max_ops_num"] = val


def set_stream_num(val: int) -> None:
    """Keep the number of OneFlow's streams."""
    settings["stream_num"] = val


def allow_fuse_all_reduce(val: bool = True) -> None:
    """Keep whether OneFlow fuses all-reduces."""
    settings["fuse_all_reduce"] = val


def allow_fuse_reduce_scatter(val: bool = True) -> None:
    """Keep whether OneFlow fuses reduce-scatters."""
    settings["fuse_reduce_scatter"] = val


def allow_fuse_all_gather(val: bool = True) -> None:
    """Keep whether OneFlow fuses all-gathers."""
    settings["fuse_all_gather"] = val


def allow_fuse_reduce(val: bool = True) -> None:
    """Keep whether OneFlow fuses reduces."""
    settings["fuse_reduce"] = val


def allow_fuse_broadcast(val: bool = True) -> None:
    """Keep whether OneFlow fuses broadcasts."""
    settings["fuse_broadcast"] = val


def allow_fuse_mixed_ops(val: bool = True) -> None:
    """Keep whether OneFlow fuses collectives of several kinds."""
    settings["fuse_mixed_ops"] = val


def enable_use_buffer_to_fuse_all_reduce(val: bool = True) -> None:
    """Keep whether OneFlow copies all-reduces into one buffer."""
    settings["use_buffer_to_fuse_all_reduce"] = val


def enable_all_to_all(val: bool = True) -> None:
    """Keep whether OneFlow uses NCCL's all-to-all."""
    settings["all_to_all"] = val


def enable_use_compute_stream(val: bool = False) -> None:
    """Keep whether OneFlow runs collectives in the stream of the computation."""
    settings["use_compute_stream"] = val


def disable_group_boxing_by_dst_parallel(val: bool = False) -> None:
    """Keep whether OneFlow groups collectives by where they lead."""
    settings["disable_group_boxing_by_dst_parallel"] = val
