"""`torch.autograd.profiler`: the older names of `torch.profiler`, over the same profiles."""

from __future__ import annotations

import contextlib
from typing import Any

from sbpjax._core.compat.profiler import profile as _profile
from sbpjax._core.compat.profiler.ranges import record_function as record_function
from sbpjax.errors import NotInJaxError


class profile(_profile.profile):
    """A profile of the work on devices within a block.

    Args:
        enabled: whether to profile at all.
        use_cuda: accepted: JAX profiles all devices.
        options: those of `torch.profiler.profile` that it has here; the others are accepted.
    """

    def __init__(self, enabled: bool = True, *, use_cuda: bool = False, **options: Any) -> None:
        known = {k: v for k, v in options.items() if k in ("record_shapes", "profile_memory", "with_stack")}
        super().__init__(**known)
        self.enabled = enabled

    def __enter__(self) -> Any:
        return super().__enter__() if self.enabled else self

    def __exit__(self, *error: Any) -> Any:
        return super().__exit__(*error) if self.enabled else None


class emit_nvtx(contextlib.nullcontext):
    """A block whose ops would be marked for nvprof: JAX marks them itself while it traces a profile."""

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        super().__init__(self)


emit_itt = emit_nvtx


class EventList(list):
    """A list of events."""


def load_nvprof(path: str) -> Any:
    """Raise: nvprof writes files of PyTorch's own ops.

    Raises:
        NotInJaxError: always.
    """
    rule, fix = "nvprof's files have the ops of PyTorch's dispatcher", "torch.profiler.profile()"
    raise NotInJaxError(f"load_nvprof({path!r})", "a file of nvprof", rule, fix)
