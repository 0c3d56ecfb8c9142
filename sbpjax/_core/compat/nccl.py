"""Settings of OneFlow's use of NCCL: accepted, kept, and without effect.

Here a collective is an operation of a compiled program: XLA fuses, schedules and overlaps them itself. `settings`
records them.
"""

from __future__ import annotations

from collections.abc import Callable

settings: dict[str, bool | int] = {}
_OPTIONS: dict[str, tuple[bool | type, str]] = {  # the value by default, or a type; its meaning
    "set_fusion_threshold_mbytes": (int, "the size up to which OneFlow fuses collectives"),
    "set_fusion_max_ops_num": (int, "the number of collectives that OneFlow fuses"),
    "set_stream_num": (int, "the number of OneFlow's streams"),
    "allow_fuse_all_reduce": (True, "whether OneFlow fuses all-reduces"),
    "allow_fuse_reduce_scatter": (True, "whether OneFlow fuses reduce-scatters"),
    "allow_fuse_all_gather": (True, "whether OneFlow fuses all-gathers"),
    "allow_fuse_reduce": (True, "whether OneFlow fuses reduces"),
    "allow_fuse_broadcast": (True, "whether OneFlow fuses broadcasts"),
    "allow_fuse_mixed_ops": (True, "whether OneFlow fuses collectives of several kinds"),
    "enable_use_buffer_to_fuse_all_reduce": (True, "whether OneFlow copies all-reduces into one buffer"),
    "enable_all_to_all": (True, "whether OneFlow uses NCCL's all-to-all"),
    "enable_use_compute_stream": (False, "whether OneFlow runs collectives in the stream of the computation"),
    "disable_group_boxing_by_dst_parallel": (False, "whether OneFlow groups collectives by where they lead"),
}


def _make_setter(name: str, default: bool | type, summary: str) -> Callable[..., None]:
    key = name.removeprefix("set_").removeprefix("allow_").removeprefix("enable_")

    def set_flag(val: bool = bool(default)) -> None:
        settings[key] = val

    def set_number(val: int) -> None:
        settings[key] = val

    setter = set_number if default is int else set_flag
    setter.__name__ = setter.__qualname__ = name
    setter.__module__, setter.__doc__ = "sbpjax.boxing.nccl", f"Keep {summary}."
    return setter


globals().update({name: _make_setter(name, *option) for name, option in _OPTIONS.items()})
