"""`TracedStep`: a function of tensors that may change a state, traced for one call.

seed │ state │ numbers of optimizers │ arguments │ captured   →   state that is written │ results
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from sbpjax.tensor import Tensor
from sbpjax.tensor.tensor import wrap_any
from sbpjax.tensor.traced import as_traced, logical

from . import tree
from .capture import State
from .captured import example
from .host_inputs import HostInputs
from .signature import Call
from .traced import Traced

# Seed and counter of the random stream; every random op in the program folds its number in.
SEED = jax.ShapeDtypeStruct((2,), np.int64)


class TracedStep(Traced):
    """One traced step.

    Args:
        fn: the function.
        state: what it may change.
        call: the arguments to trace with; only their facts count.
        asked: what the user asked for, for messages.
        auto: the options of auto parallelism, None without.
        host_inputs: collects the inputs that the host works out of the arguments; None where there can be none.

    Attributes:
        written: the positions in the state of the tensors that it writes, its first outputs.
        results: what the function returned, without the tensors.
        layouts: the layouts of those tensors, as the trace knows them; None for local ones.
    """

    written: list[int]
    results: tree.Skeleton
    layouts: list

    def __init__(
        self,
        fn: Callable,
        state: State,
        call: Call,
        asked: str,
        auto: Any = None,
        host_inputs: HostInputs | None = None,
    ) -> None:
        self._fn, self._state, self._call, self._auto = fn, state, call, auto
        self._host = host_inputs
        self._returned: set[int] = set()
        super().__init__(
            self._run,
            [SEED],
            lambda seed: jax.random.fold_in(jax.random.key(seed[0]), seed[1]),
            [*map(example, state.tensors), *state.numbers(), *map(example, call.tensors)],
            owned=[*state.tensors, *state.optimizers],
            check=lambda writes: writes.check(asked, self._returned),
        )
        if host_inputs is not None:
            first = 1 + len(state.tensors) + len(state.options)
            self.closed = host_inputs.split(self.closed, first, len(call.tensors))
        del self._fn, self._state, self._call, self._host

    def _run(self, arrays: list) -> list:
        state, call = self._state, self._call
        first = len(state.tensors) + len(state.options)
        host, given = self._host, arrays[first:]
        args, kwargs = call.rebuilt([_on_tracer(t, x) for t, x in zip(call.tensors, given, strict=True)])
        with contextlib.ExitStack() as around:
            if self._auto is not None:
                around.enter_context(self._auto.tracing())
            if host is not None:
                around.enter_context(host.collecting(given, call.tensors))
            around.enter_context(state.traced(arrays[:first]))
            result = self._fn(*args, **kwargs)
            after = [logical(t) for t in state.tensors]
            self.written = [i for i, array in enumerate(after) if array is not arrays[i]]
            returned, self.results = tree.apart(result)
            self._returned = set(map(id, returned))
            self.layouts = [t.layout for t in returned]
            keys = [] if host is None else host.outputs()
            return [*(after[i] for i in self.written), *map(logical, returned), *keys]


def _on_tracer(like: Tensor, tracer) -> Tensor:
    tensor = wrap_any(tracer, as_traced(like.layout))
    return tensor.requires_grad_() if like.requires_grad else tensor
