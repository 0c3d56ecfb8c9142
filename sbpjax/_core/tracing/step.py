"""`TracedStep`: trace of a function of tensors that may change a state, for one call.

seed │ state │ numbers of optimizers │ arguments │ captured   →   state that is written │ results
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from sbpjax._core.jax_private import core as jax_core
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.dispatch.traced import as_traced, is_per_process, logical_value
from sbpjax._core.tensor.handle.mode import mode
from sbpjax._core.tensor.handle.tensor import wrap_any
from sbpjax._core.tensor.storage.payload import kept_as, mark_kept

from . import tree
from .capture import State
from .captured import example
from .escaped_tensors import (
    MOST_ATTEMPTS,
    EscapedTensors,
    Output,
    Recaptured,
    belongs_to_trace,
    common_placement,
    settle_escaped,
    text_of,
)
from .host_inputs import HostInputs
from .outside_writes import OWN_STATE, OutsideWrites
from .signature import Call
from .traced import Traced

# Seed and counter of the random stream; every random op in the program folds its number in.
SEED = jax.ShapeDtypeStruct((2,), np.int64)


class TracedStep(Traced):
    """One traced step.

    Args:
        fn: the function.
        state: the tensors that it may change.
        call: the arguments to trace with; only their facts count.
        operation: the user's request, for messages.
        auto: the options of auto parallelism, None without.
        host_inputs: collects the inputs that the host works out of the arguments; None where there can be none.

    Attributes:
        written: the positions in the state of the tensors that it writes, its first outputs.
        results: the function's result, without the tensors.
        layouts: the layouts of those tensors, as the trace knows them; None for local ones.
        left: tensors that the function stored elsewhere and that depend on the arguments: the last outputs.
    """

    written: list[int]
    results: tree.Skeleton
    layouts: list
    left: list[Output]

    def __init__(
        self,
        fn: Callable,
        state: State,
        call: Call,
        operation: str,
        auto: Any = None,
        host_inputs: HostInputs | None = None,
    ) -> None:
        self._fn, self._state, self._call, self._auto = fn, state, call, auto
        self._host = host_inputs
        self._returned: set[int] = set()
        around = [owner for owner in (getattr(fn, "_graph", None),) if owner is not None]
        self._kept = state.kept = kept = EscapedTensors(state.modules, around)
        self._left: list[Tensor] = []
        self._foreign: list[Tensor] = []
        before, mode.inline = mode.inline, False
        try:
            self._trace(operation)
            if self._foreign and not state.attempt:
                # Constants among them show in a trace without parts of its own; the rest goes with its trace.
                self._reset_last_trace()
                mode.inline = True
                self._trace(operation)
                self._resolve_stored()
                self._reset_last_trace()
                mode.inline = False
                self._trace(operation)
            kept.undo(self._foreign)
            self.left = self._resolve_stored()
        except Recaptured:
            raise
        except BaseException:
            kept.restore()  # a trace that fails changes nothing
            raise
        finally:
            mode.inline = before
        if host_inputs is not None:
            first = 1 + len(state.tensors) + len(state.options)
            self.closed = host_inputs.split(self.closed, first, len(call.tensors))
        del self._fn, self._state, self._call, self._host, self._kept, self._left, self._foreign

    def _trace(self, operation: str) -> None:
        state, call = self._state, self._call
        super().__init__(
            self._run,
            [SEED],
            lambda seed: jax.random.fold_in(jax.random.key(seed[0]), seed[1]),
            [*map(example, state.tensors), *state.numbers(), *map(example, call.tensors)],
            owned=[*state.tensors, *state.optimizers],
            check=lambda writes: self._check(writes, operation),
            again=self._reset_last_trace,
            fix=getattr(self._fn, "own_state", OWN_STATE),
        )

    def _check(self, writes: OutsideWrites, operation: str) -> None:
        stored = [x for x, _ in writes.written_tensors() if kept_as(x) == "output"]
        if stored:
            self._promote_to_state(stored)
        take = getattr(self._fn, "take", None)
        plain = [] if take is None or self._state.attempt == MOST_ATTEMPTS - 1 else writes.plain(self._returned)
        if plain:
            take(plain)
            self._promote_to_state([])
        writes.check(operation, self._returned)

    def _promote_to_state(self, stored: list[Tensor]) -> None:
        """Let tensors stored by runs be state, since the function reads or writes them; the state is listed again."""
        self._kept.restore()
        self._kept.undo(self._left)
        for tensor in stored:
            mark_kept(tensor, None)
        raise Recaptured

    @property
    def stores(self) -> bool:
        """Whether runs store values of their own, which a further call may find."""
        return any(output.constant is None for output in self.left)

    def undo(self, state: State) -> None:
        """Restore the places where the trace stored tensors, if it makes no program."""
        state.kept.restore()
        state.kept.undo([t for t in (output.tensor() for output in self.left) if t is not None])

    def text(self) -> str:
        """Return the program as text that is equal for equal ones."""
        return text_of(self.closed)

    def _reset_last_trace(self) -> None:
        """Forget the stored tensors of the last trace: a further one starts from the same state."""
        if self._left or self._foreign:
            self._kept.restore()
            self._kept.undo([*self._left, *self._foreign])

    def _resolve_stored(self) -> list[Output]:
        """Return the tensors that the runs store, after those that are the same in all of them got their values."""
        read = [t for t in self.captured if kept_as(t) == "output"]
        if read:
            self._promote_to_state(read)
        state, call = self._state, self._call
        inputs = [None, *state.tensors, *[None] * len(state.options), *[None] * len(call.tensors), *self.captured]
        for i in self.written:
            inputs[1 + i] = None
        first, count = len(self.written) + len(self.layouts) - len(self._left), len(self.layouts) - len(self._left)
        last = state.attempt == MOST_ATTEMPTS - 1
        place = common_placement((*state.tensors, *call.tensors))
        self.closed, outputs = settle_escaped(self._kept, self._left, self.closed, first, inputs, place, last)
        laid = zip(self.layouts[count:], outputs, strict=True)
        self.layouts = self.layouts[:count] + [layout for layout, output in laid if output.constant is None]
        return outputs

    def _run(self, arrays: list) -> list:
        state, call = self._state, self._call
        first = len(state.tensors) + len(state.options)
        host, given = self._host, arrays[first:]
        args, kwargs = call.rebuilt([_on_tracer(t, x) for t, x in zip(call.tensors, given, strict=True)])
        with contextlib.ExitStack() as around:
            around.enter_context(self._kept.watching())
            around.enter_context(_given_by_processes(given, call.tensors))
            if self._auto is not None:
                around.enter_context(self._auto.tracing())
            if host is not None:
                around.enter_context(host.collecting(given, call.tensors))
            around.enter_context(state.traced(arrays[:first]))
            result = self._fn(*args, **kwargs)
            self._kept.rewrite(state.tensors)
            after = [logical_value(t) for t in state.tensors]
            self.written = [i for i, array in enumerate(after) if array is not arrays[i]]
            returned, self.results = tree.split_tensors(result)
            self._returned = set(map(id, returned))
            outs = [*(after[i] for i in self.written), *map(logical_value, returned)]
            keys = [] if host is None else host.outputs()
            layouts = [t.layout for t in returned]
        del args, kwargs, result, returned
        left = self._kept.left()
        self._left = [t for t in left if belongs_to_trace(t, jax_core.trace_ctx.trace)]
        self._foreign = [t for t in left if not belongs_to_trace(t, jax_core.trace_ctx.trace)]
        self.layouts = layouts + [t.layout for t in self._left]
        return [*outs, *map(logical_value, self._left), *keys]


@contextlib.contextmanager
def _given_by_processes(tracers: list, tensors: list[Tensor]):
    """Let local arguments count as different in every process within the block."""
    before = mode.local_values
    mode.local_values = {id(x): x for x, t in zip(tracers, tensors, strict=True) if is_per_process(t)}
    try:
        yield
    finally:
        mode.local_values = before


def _on_tracer(like: Tensor, tracer) -> Tensor:
    tensor = wrap_any(tracer, as_traced(like.layout))
    return tensor.requires_grad_() if like.requires_grad else tensor
