"""Profiling: `torch.profiler`'s and `oneflow.profiler`'s names over `jax.profiler`: timings and traces."""

from ._core.compat.profiler.profile import ProfilerAction as ProfilerAction
from ._core.compat.profiler.profile import ProfilerActivity as ProfilerActivity
from ._core.compat.profiler.profile import kineto_available as kineto_available
from ._core.compat.profiler.profile import profile as profile
from ._core.compat.profiler.profile import schedule as schedule
from ._core.compat.profiler.profile import supported_activities as supported_activities
from ._core.compat.profiler.profile import tensorboard_trace_handler as tensorboard_trace_handler
from ._core.compat.profiler.ranges import profiler_start as profiler_start
from ._core.compat.profiler.ranges import profiler_stop as profiler_stop
from ._core.compat.profiler.ranges import range_pop as range_pop
from ._core.compat.profiler.ranges import range_push as range_push
from ._core.compat.profiler.ranges import record_function as record_function
