"""`torch.profiler`'s and `oneflow.profiler`'s names over `jax.profiler`: what ran, how long, and traces of it."""

from .profile import ProfilerAction as ProfilerAction
from .profile import ProfilerActivity as ProfilerActivity
from .profile import kineto_available as kineto_available
from .profile import profile as profile
from .profile import schedule as schedule
from .profile import supported_activities as supported_activities
from .profile import tensorboard_trace_handler as tensorboard_trace_handler
from .ranges import profiler_start as profiler_start
from .ranges import profiler_stop as profiler_stop
from .ranges import range_pop as range_pop
from .ranges import range_push as range_push
from .ranges import record_function as record_function
