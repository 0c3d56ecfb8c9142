"""`torch.utils.checkpoint`: activation checkpointing: backward recomputes a function's values."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Callable
from typing import Any

from sbpjax._core.tensor import Tensor
from sbpjax._core.tracing.checkpoint import checkpoint as _checkpoint
from sbpjax._core.tracing.segments import checkpoint_sequential as _checkpoint_sequential
from sbpjax.errors import CheckpointError as CheckpointError

from .absent import make_absent_class


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
    """Run ``function(*args, **kwargs)``; its backward runs it again instead of keeping its intermediate values.

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


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None):
    """Accept a setting for a block: there is nothing that it would show."""
    yield


set_checkpoint_early_stop = set_checkpoint_debug_enabled


def get_device_states(*args: Any) -> tuple[list, list]:
    """Return the devices of the arguments that draw random numbers of their own, and their states: none here.

    One generator draws for all devices: its state is `torch.get_rng_state()`.
    """
    return [], []


def set_device_states(devices: Any, states: Any, *, device_type: str | None = None) -> None:
    """Do nothing: `torch.set_rng_state` sets the state of the one generator."""


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments, tensors among them detached: leaves that require gradients as before."""
    return tuple(x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x for x in inputs)


class CheckpointPolicy(enum.Enum):
    """Selective checkpointing of an op's values: saved or recomputed."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3


_SELECTIVE = (
    "a policy per op is chosen while PyTorch's dispatcher runs",
    "checkpoint the parts that are to run again; graph.config.activation_checkpointing",
)
create_selective_checkpoint_contexts = make_absent_class(
    "torch.utils.checkpoint.create_selective_checkpoint_contexts", *_SELECTIVE
)
SelectiveCheckpointContext = make_absent_class("torch.utils.checkpoint.SelectiveCheckpointContext", *_SELECTIVE)
