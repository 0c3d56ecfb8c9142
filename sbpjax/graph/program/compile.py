"""`compile`: a function of tensors as one planned, compiled program.

    def step(x, y):
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    step = sbpjax.compile(step, state=(model, optimizer))

The first call with new shapes, dtypes or layouts traces the function, plans the whole program (forward, backward,
update) with the layouts of its inputs and state as pins, and compiles it; later calls run it. State that the function
changes is donated in and written back in place; `sbpjax.graph.program.program` has that part.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

from sbpjax._core.jax_private import trace_state_clean
from sbpjax._core.runtime.ambient_mesh import hide_mesh
from sbpjax._core.runtime.gc_pause import pause_gc
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.calls.op_errors import check_leaked
from sbpjax._core.tensor.handle.mode import mode
from sbpjax._core.tensor.storage.payload import is_traced, payloads
from sbpjax._core.tracing import tree
from sbpjax._core.tracing.capture import State
from sbpjax._core.tracing.escaped_tensors import MOST_ATTEMPTS, Recaptured
from sbpjax._core.tracing.outside_writes import check_arguments
from sbpjax._core.tracing.signature import Call, Signature, difference, signature_of

from ..dynamic import Dynamic, snapshot_of
from ..report_registry import REPORTS
from .build_program import build_program, check_repeats
from .program import Options, Program

if TYPE_CHECKING:
    from sbpjax._core.inspect.memory import Memory
    from sbpjax._core.inspect.traffic import Traffic


def compile(fn: Callable | None = None, *, state=(), lowering: str = "spmd", dynamic: Dynamic | None = None):
    """Return ``fn`` as a function that runs as one compiled program.

    Args:
        fn: a function of tensors (nested lists, tuples, dicts of them) and static Python values.
        state: modules, optimizers and tensors that it changes in place.
        lowering: ``"spmd"`` (explicit collectives) or ``"gspmd"`` (sharding constraints, collectives left to XLA).
        dynamic: sizes of inputs that are padded to a few, see `Dynamic`.

    Returns:
        A `Compiled`; call it as ``fn``.

    Example:
        >>> double = compile(lambda x: x * 2)
    """
    if fn is None:
        return functools.partial(compile, state=state, lowering=lowering, dynamic=dynamic)
    return Compiled(fn, state, lowering, dynamic)


class Compiled:
    """A function of tensors with its compiled programs, one per input signature."""

    def __init__(self, fn: Callable, state, lowering: str, dynamic: Dynamic | None = None) -> None:
        self._fn = fn
        self._dynamic = dynamic
        self._owners = state
        self._options = Options(lowering=lowering)
        self._programs: dict = {}
        self._latest: Signature | None = None
        functools.update_wrapper(self, fn)

    @hide_mesh
    def __call__(self, *args, **kwargs):
        """Run the program for these arguments; trace and compile it first if they are of a new signature."""
        if not trace_state_clean() and any(is_traced(t) for t in Call(args, kwargs).tensors):
            return self._fn(*args, **kwargs)  # part of a program that is being traced
        if self._dynamic is None:
            return self._run(*args, **kwargs)
        name = f"compile({getattr(self._fn, '__name__', type(self._fn).__name__)})"
        owners = self._owners if isinstance(self._owners, (tuple, list)) else [self._owners]
        return self._dynamic.run(name, self._fn, self._run, args, kwargs, lambda: snapshot_of(owners))

    def _run(self, *args, **kwargs):
        state, call, program = self._prepare_call(args, kwargs)
        return program.run(state, call.tensors)

    def plan(self, *args, **kwargs):
        """Return the plan of the program for these arguments, None for a program on one device; nothing runs."""
        return self._prepare_call(args, kwargs)[2].plan

    def placement(self, *args, **kwargs):
        """Return the placement of the program for these arguments, None for one on one device; nothing runs."""
        return self._prepare_call(args, kwargs)[2].placement

    def lower(self, *args, **kwargs):
        """Return the `jax.stages.Lowered` of the program for these arguments; nothing runs."""
        return self._prepare_call(args, kwargs)[2].lower()

    def memory(self, *args, compiled: bool = True, **kwargs) -> Memory:
        """Return the memory that the program for these arguments needs on one device; nothing runs.

        Args:
            *args: its arguments.
            compiled: the compiler's figure; else an estimate from the plan, which takes no compilation.
            **kwargs: its keyword arguments.

        Raises:
            OutOfMemoryError: the compiler finds that the device has less.
        """
        state, _, program = self._prepare_call(args, kwargs)
        return REPORTS["memory"](program, state, compiled)

    def traffic(self, *args, **kwargs) -> Traffic:
        """Return the traffic of the program for these arguments, planned and compiled, by kind; nothing runs.

        Raises:
            MixedTensorError: the program runs on one device, and moves nothing.
        """
        return REPORTS["traffic"](self._prepare_call(args, kwargs)[2])

    @hide_mesh
    def _prepare_call(self, args, kwargs) -> tuple[State, Call, Program]:
        call = Call(args, kwargs)
        check_leaked(*call.tensors)
        for attempt in range(MOST_ATTEMPTS):
            state = State(self._owners, attempt)
            with contextlib.suppress(Recaptured):
                return state, call, self._program(state, call)
        raise AssertionError("the last attempt makes a program")

    def _program(self, state: State, call: Call) -> Program:
        casting = mode.autocast and mode.autocast.key
        key = signature_of(call, state, self._fn, (self._options, casting))
        found = self._programs.get(key)
        operation = f"compile({getattr(self._fn, '__name__', type(self._fn).__name__)})"
        if found is not None and found.unsettled is not None:
            check_repeats(found, _reject_writes(self._fn, operation), state, call)
        if found is None:
            with pause_gc():
                found = build_program(_reject_writes(self._fn, operation), state, call, self._options, operation)
            if self._latest is not None:
                found.change = difference(self._latest, key, call.paths(self._fn), call.places)
            self._programs[signature_of(call, state, self._fn, (self._options, casting))] = found
        self._latest = key
        return found


def _reject_writes(fn: Callable, operation: str) -> Callable:
    """Return a function that raises if it writes to one of its arguments; `nn.Graph` gives ``build`` its own copies."""

    def run(*args, **kwargs):
        given = [x for x in tree.flatten((args, kwargs))[0] if isinstance(x, Tensor)]
        before = payloads(given)
        result = fn(*args, **kwargs)
        check_arguments(operation, given, before)
        return result

    return run
