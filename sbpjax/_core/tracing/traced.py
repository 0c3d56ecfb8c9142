"""`Traced`: traces a function into one program; its reads and writes become inputs and outputs.

    seed │ arrays that it is given │ tensors that it captured   →   arrays that it returns

This is the one place where a function becomes a program: `_core.tracing.step` traces steps with state for `nn.Graph`,
`compile` and pipelines, `_core.tracing.transform` functions under a transform of JAX.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax

from sbpjax._core.runtime.ambient_mesh import hide_mesh
from sbpjax._core.tensor.amp.casting import use_fresh_cache
from sbpjax._core.tensor.creation.generator import default_generator
from sbpjax._core.tensor.dispatch.op_calls import trace_calls
from sbpjax.errors import SbpjaxError

from .captured import Captured
from .outside_writes import OWN_STATE, OutsideWrites

_MOST_TRACES = 3


class Traced:
    """One traced function.

    Args:
        body: the function, from a list of arrays to a list of arrays; it is called once per trace, on tracers.
        seed: the abstract inputs from which the key of random ops is made.
        key: makes that key of tracers of them.
        examples: shapes and dtypes of the arrays.
        check: called after every trace with the writes that it made, and raises for those that it may not make.
        captured: collects the tensors that the function reads from outside.
        owned: the tensors and optimizers that it may write.
        fix: how the user lets it write more, for errors.
        again: called before every further trace, to undo outside effects of the one before.
        more: called after ``body`` in the same trace; returns further outputs, for tensors of others that it wrote.

    Attributes:
        closed: the program; ops are calls in it, see `_core.tensor.dispatch.op_calls.inlined`.
        captured: the tensors that it reads from outside, its last inputs.
        is_random: whether it draws random numbers.
    """

    is_random: bool

    @hide_mesh
    def __init__(
        self,
        body: Callable[[list], Sequence],
        seed: Sequence,
        key: Callable,
        examples: Sequence,
        check: Callable[[OutsideWrites], None],
        captured: Captured | None = None,
        owned: Sequence = (),
        more: Callable[[OutsideWrites], list] | None = None,
        again: Callable[[], None] | None = None,
        fix: str = OWN_STATE,
    ) -> None:
        found = Captured() if captured is None else captured
        for number in range(_MOST_TRACES):
            if number and again is not None:
                again()
            writes = OutsideWrites(owned, fix)

            def pure(*inputs, writes=writes):
                arrays, outside = inputs[len(seed) : len(seed) + len(examples)], inputs[len(seed) + len(examples) :]
                with writes.watching():
                    with found.collecting(outside), default_generator.under_trace(key(*inputs[: len(seed)])) as stream:
                        with use_fresh_cache():
                            outs = list(body(list(arrays)))
                        self.is_random = stream.drawn > 0
                    return outs if more is None else outs + more(writes)

            try:
                with trace_calls():
                    closed = jax.make_jaxpr(pure)(*seed, *examples, *found.examples())
            except SbpjaxError as error:
                error.__notes__ = []  # JAX's notes about its own frames help no user
                raise error from None
            stands = found.settle_inputs(last=number == _MOST_TRACES - 1)
            check(writes)
            if stands:
                break
        self.closed = found.drop_unread(closed, len(seed) + len(examples))
        self.captured = found.tensors
