"""`torch.autograd.profiler`: the older face of the profiler; see `sbpjax.profiler`."""

from __future__ import annotations

import contextlib
from typing import Any

from sbpjax.profiler import ProfilerActivity as ProfilerActivity
from sbpjax.profiler import kineto_available as kineto_available
from sbpjax.profiler import profile as _profile
from sbpjax.profiler import record_function as record_function
from sbpjax.profiler.profile import Average, Averages
from sbpjax.profiler.ranges import Range

FunctionEvent, FunctionEventAvg, EventList = Range, Average, Averages


class profile(_profile):
    """Record what runs within a block.

    Args:
        enabled: False records nothing.
        use_cuda: accepted; what runs on devices is in JAX's own trace.
        options: accepted: what to record besides.
    """

    def __init__(self, enabled: bool = True, *, use_cuda: bool = False, **options: Any) -> None:
        super().__init__()
        self.enabled = enabled

    def __enter__(self) -> profile:
        if self.enabled:
            self.start()
        return self

    def __exit__(self, *error: Any) -> None:
        if self.enabled:
            self.stop()

    @property
    def function_events(self) -> list[Range]:
        """The recorded stretches."""
        return self.events()

    def table(self, sort_by: str | None = None, row_limit: int = 100, **options: Any) -> str:
        """Return the averages by name as text."""
        return self.key_averages().table(sort_by, row_limit)

    def total_average(self) -> Average:
        """Return the sum of all."""
        return self.key_averages().total_average()


class emit_nvtx(contextlib.AbstractContextManager):
    """Within the block nothing changes: ops name their own stretches in a trace of JAX's.

    Args:
        enabled: accepted.
        record_shapes: accepted.
    """

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled = enabled

    def __exit__(self, *error: Any) -> None:
        pass


emit_itt = emit_nvtx
