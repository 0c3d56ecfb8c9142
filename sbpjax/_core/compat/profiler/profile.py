"""`profile`: times of the named ranges of a program, and a trace by JAX's profiler.

    with profile(activities=[ProfilerActivity.CPU], on_trace_ready=tensorboard_trace_handler("log")) as p:
        for batch in data:
            step(batch)
            p.step()
    print(p.key_averages().table())

Ranges are those of `record_function`, and the steps. The costs of single operations inside a compiled program are in
the trace (TensorBoard, Perfetto) and in `sbpjax.nn.Graph.profile`.
"""

from __future__ import annotations

import enum
import json
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import jax

from sbpjax._core.compat.cuda import devices as cuda

from .ranges import Range, collect, record_function, stop_collecting


class ProfilerActivity(enum.Enum):
    """Activities to record; a trace of JAX's profiler holds all of them."""

    CPU = 0
    CUDA = 1
    XPU = 2


class ProfilerAction(enum.Enum):
    """Action of a schedule in a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def supported_activities() -> set[ProfilerActivity]:
    """Return the activities that can be recorded here."""
    return {ProfilerActivity.CPU} | ({ProfilerActivity.CUDA} if cuda.is_available() else set())


def kineto_available() -> bool:
    """Return whether PyTorch's tracing library is there; JAX has its own."""
    return False


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0
) -> Callable[[int], ProfilerAction]:
    """Return a schedule: after `skip_first`, repeatedly `wait` and `warmup` steps, then `active` recorded ones.

    Args:
        wait: steps that are not looked at.
        warmup: steps that are run and not recorded.
        active: recorded steps.
        repeat: how often; 0 for ever.
        skip_first: steps before the first `wait`.
    """

    def action(step: int) -> ProfilerAction:
        step -= skip_first
        length = wait + warmup + active
        if step < 0 or (repeat > 0 and step // length >= repeat) or step % length < wait:
            return ProfilerAction.NONE
        place = step % length
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD_AND_SAVE if place == length - 1 else ProfilerAction.RECORD

    return action


def tensorboard_trace_handler(dir_name: str, worker_name: str | None = None, use_gzip: bool = False) -> Callable:
    """Return a writer of traces for TensorBoard: into `dir_name`, as ``on_trace_ready`` of `profile`."""

    def handler(profiler: profile) -> None:
        name = worker_name or f"{os.uname().nodename}_{os.getpid()}"
        Path(dir_name).mkdir(parents=True, exist_ok=True)
        profiler.export_chrome_trace(str(Path(dir_name) / f"{name}.{time.time_ns()}.pt.trace.json"))

    handler.trace_dir = dir_name  # type: ignore[attr-defined]
    return handler


class Average(NamedTuple):
    """All stretches of one name.

    Attributes:
        key: the name.
        count: how many.
        cpu_time_total: microseconds of all.
        self_cpu_time_total: microseconds without those of named stretches inside.
    """

    key: str
    count: int
    cpu_time_total: float
    self_cpu_time_total: float

    @property
    def cpu_time(self) -> float:
        """Microseconds of one."""
        return self.cpu_time_total / self.count


class Averages(list):
    """Averages by name, which print as a table."""

    def table(self, sort_by: str | None = None, row_limit: int = 100, **_: Any) -> str:
        """Return the averages as text, the longest first."""
        rows = sorted(self, key=lambda a: getattr(a, sort_by or "cpu_time_total", a.cpu_time_total), reverse=True)
        lines = [f"{'Name':<40} {'Calls':>8} {'Total us':>14} {'Self us':>14} {'Average us':>14}"]
        for a in rows[: row_limit if row_limit > 0 else None]:
            times = f"{a.cpu_time_total:>14.1f} {a.self_cpu_time_total:>14.1f} {a.cpu_time:>14.1f}"
            lines.append(f"{a.key[:40]:<40} {a.count:>8} {times}")
        return "\n".join(lines)

    def total_average(self) -> Average:
        """Return the sum of all."""
        own = sum(a.self_cpu_time_total for a in self)
        return Average("Total", sum(a.count for a in self) or 1, own, own)


class profile:
    """Record the activities within a block.

    Args:
        activities: activities to record; any beside the CPU are in JAX's trace.
        schedule: which steps are recorded; all if not given.
        on_trace_ready: called with this when a recording is complete.
        record_shapes: accepted.
        profile_memory: accepted; `sbpjax.nn.Graph.memory` reports the memory of a compiled step.
        with_stack: accepted.
        with_flops: accepted.
        with_modules: accepted.
        record_bandwidth_for_cuda: accepted.
        trace_dir: where JAX's own trace goes; none is taken if not given.
    """

    def __init__(
        self,
        activities: Iterable[ProfilerActivity] | None = None,
        *,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[profile], Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        record_bandwidth_for_cuda: bool = False,
        trace_dir: str | None = None,
    ) -> None:
        self.activities = set(activities or supported_activities())
        self._schedule = schedule or (lambda step: ProfilerAction.RECORD)
        self._on_trace_ready = on_trace_ready
        self._trace_dir = trace_dir
        self.step_num = 0
        self._ranges: list[Range] = []
        self._recording = False
        self._in_step: record_function | None = None

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self.stop()

    def start(self) -> None:
        """Begin."""
        self._take(ProfilerAction.NONE, self._schedule(self.step_num))

    def stop(self) -> None:
        """End, and hand over the recording."""
        self._take(self._schedule(self.step_num), ProfilerAction.NONE)

    def step(self) -> None:
        """Mark the end of a training step."""
        before = self._schedule(self.step_num)
        self.step_num += 1
        self._take(before, self._schedule(self.step_num))

    def _take(self, before: ProfilerAction, after: ProfilerAction) -> None:
        on = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
        if self._in_step is not None:
            self._in_step.__exit__()
            self._in_step = None
        complete = before is ProfilerAction.RECORD_AND_SAVE or (before in on and after not in on)
        if self._recording and complete:
            self._recording = False
            stop_collecting(self._ranges)
            if self._trace_dir is not None:
                jax.profiler.stop_trace()
            if self._on_trace_ready is not None:
                self._on_trace_ready(self)
        if after in on:
            if not self._recording:
                self._recording = True
                self._ranges = []
                collect(self._ranges)
                if self._trace_dir is not None:
                    jax.profiler.start_trace(self._trace_dir)
            self._in_step = record_function(f"ProfilerStep#{self.step_num}").__enter__()

    def events(self) -> list[Range]:
        """Return the recorded stretches, in the order in which they ended."""
        return list(self._ranges)

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0) -> Averages:
        """Return the recorded stretches by name."""
        total: dict[str, list[float]] = {}
        inside: dict[int, float] = {}  # per depth, the time of ended stretches whose surrounding one has not ended yet
        for r in self._ranges:
            own = r.duration_s - inside.pop(r.depth + 1, 0.0)
            inside[r.depth] = inside.get(r.depth, 0.0) + r.duration_s
            sums = total.setdefault(r.name, [0, 0.0, 0.0])
            for i, value in enumerate((1, r.duration_s * 1e6, max(0.0, own) * 1e6)):
                sums[i] += value
        return Averages(Average(name, int(n), t, own) for name, (n, t, own) in total.items())

    def export_chrome_trace(self, path: str) -> None:
        """Write the recorded stretches as a trace that Chrome and Perfetto show."""
        common = {"ph": "X", "pid": os.getpid(), "tid": 0, "cat": "user_annotation"}
        spans = [
            {"name": r.name, "ts": r.start_s * 1e6, "dur": r.duration_s * 1e6, **common}
            for r in sorted(self._ranges, key=lambda r: r.start_s)
        ]
        Path(path).write_text(json.dumps({"traceEvents": spans, "displayTimeUnit": "ms"}))
