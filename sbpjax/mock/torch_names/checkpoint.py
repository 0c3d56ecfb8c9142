"""`torch.utils.checkpoint`: backward runs a function again instead of keeping what it computed."""

from __future__ import annotations

import contextlib
import enum
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from sbpjax.errors import CheckpointError as CheckpointError
from sbpjax.tensor import Tensor, generator
from sbpjax.tracing.checkpoint import checkpoint as _checkpoint
from sbpjax.tracing.segments import checkpoint_sequential as _checkpoint_sequential

from .absent import absent


class CheckpointPolicy(enum.Enum):
    """What PyTorch may do with the result of an op: keep it, or compute it again."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4


class DefaultDeviceType:
    """The kind of device whose generators PyTorch keeps the state of."""

    _kind = "cuda"

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        """Set it."""
        DefaultDeviceType._kind = device

    @staticmethod
    def get_device_type() -> str:
        """Return it."""
        return DefaultDeviceType._kind


def noop_context_fn() -> tuple:
    """Return two contexts that do nothing, for forward and for the second run."""
    return contextlib.nullcontext(), contextlib.nullcontext()


def checkpoint(
    function: Callable,
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], tuple] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """Run ``function(*args, **kwargs)``; its backward runs it again instead of keeping what it computed.

    Args:
        function: a function of tensors.
        args: its arguments.
        use_reentrant: accepted: there is one way here.
        context_fn: returns the contexts of the first and of the second run.
        determinism_check: accepted.
        debug: accepted.
        early_stop: accepted.
        preserve_rng_state: draw the same random numbers again.
        kwargs: passed on.
    """
    if context_fn is noop_context_fn:
        return _checkpoint(function, *args, preserve_rng_state=preserve_rng_state, **kwargs)
    contexts = list(context_fn())

    def within(*args: Any, **kwargs: Any) -> Any:
        with contexts.pop(0) if len(contexts) > 1 else contexts[0]:
            return function(*args, **kwargs)

    owner = function if hasattr(function, "parameters") else getattr(function, "__self__", None)
    if hasattr(owner, "parameters"):
        within.parameters = owner.parameters  # type: ignore[attr-defined, union-attr]
    return _checkpoint(within, *args, preserve_rng_state=preserve_rng_state, **kwargs)


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, preserve_rng_state: bool = True
) -> Any:
    """Run functions one after the other; backward runs all segments but the last again."""
    return _checkpoint_sequential(functions, segments, input, use_reentrant, preserve_rng_state=preserve_rng_state)


def detach_variable(inputs: tuple) -> tuple:
    """Return tensors that share memory with the inputs and are leaves of a graph of their own."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}")
    return tuple(x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x for x in inputs)


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warn if none of the inputs requires a gradient."""
    if not any(x.requires_grad for x in inputs if isinstance(x, Tensor)):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """Return the devices of the tensors among some arguments, and the states of their generators.

    One generator serves all devices here, so there is one state, of number 0, if there is a tensor at all.
    """
    found = any(isinstance(a, Tensor) for a in args)
    return ([0], [generator.get_rng_state()]) if found else ([], [])


def set_device_states(devices: Iterable[int], states: Iterable[Tensor], *, device_type: str | None = None) -> None:
    """Set the generator to the states that `get_device_states` returned."""
    for state in states:
        generator.set_rng_state(state)


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None):
    """Accept a setting for a block: there is nothing that it would show."""
    yield


set_checkpoint_early_stop = set_checkpoint_debug_enabled


class CheckpointFunction:
    """The older form of `checkpoint`, as a function with a gradient of its own."""

    @staticmethod
    def apply(run_function: Callable, preserve_rng_state: bool, *args: Any) -> Any:
        """Run the function; its backward runs it again."""
        return _checkpoint(run_function, *args, preserve_rng_state=preserve_rng_state)


create_selective_checkpoint_contexts = absent(
    "torch.utils.checkpoint.create_selective_checkpoint_contexts",
    "a policy per op is chosen while PyTorch's dispatcher runs",
    "checkpoint the parts that are to run again; graph.config.activation_checkpointing",
)
SelectiveCheckpointContext = absent(
    "torch.utils.checkpoint.SelectiveCheckpointContext",
    "a policy per op is chosen while PyTorch's dispatcher runs",
    "checkpoint the parts that are to run again; graph.config.activation_checkpointing",
)
GraphExecGroup = absent("torch.utils.checkpoint.GraphExecGroup", "graphs of PyTorch's tape", "checkpoint(function, x)")
