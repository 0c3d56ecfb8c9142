"""`PipelinedProgram`: a traced step whose state lies on several placements, run as a pipeline of stages."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jax.extend import core
from jax.extend.core import Var

from sbpjax import world
from sbpjax.errors import GraphConfigError, GraphError, message
from sbpjax.graph.capture import Lifted, State
from sbpjax.graph.interrupt import Uninterrupted
from sbpjax.graph.program import _NO_SEED, _SEED, _UNSHARED, Options, Program, _example, _slot
from sbpjax.graph.signature import Call
from sbpjax.graph.zero import Zero
from sbpjax.sbp.layout import Layout
from sbpjax.sbp.normalise import normalise
from sbpjax.sbp.stage import stage_transfer_p
from sbpjax.tensor import Tensor
from sbpjax.tensor.generator import default_generator

from .driver import Driver
from .plan import Pipeline, Planner

log = logging.getLogger("sbpjax.pipeline")


class PipelinedProgram(Program):
    """One traced step, cut into stages, planned and compiled.

    Args:
        fn: the function.
        state: what it may change.
        call: the arguments to trace with; only their facts count.
        options: how to compile.
        asked: what the user asked for, for messages.
        zero: which of the state rests divided over the data-parallel ranks.
        rule: the schedule, see `sbpjax.pipeline.schedule`.

    Attributes:
        pipeline: the tasks, what goes between them, and the schedule.
    """

    pipeline: Pipeline

    def __init__(
        self, fn: Callable, state: State, call: Call, options: Options, asked: str, zero: Zero | None, rule
    ) -> None:
        if zero is not None and zero.per_use:
            raise GraphConfigError(
                message(
                    asked,
                    "enable_zero(stage=3) with parameters on several placements",
                    "a pipeline divides optimizer state and gradients; parameters are divided by its stages",
                    "config.enable_zero(True, stage=2)",
                )
            )
        if world.current().size > 1:
            raise GraphError(
                message(
                    asked,
                    f"stages on several placements in {world.current().size} processes",
                    "the driver of a pipeline runs the stages of one process; eager mode moves between all",
                    "start one process that sees the devices of all stages, or put the state on one placement",
                )
            )
        self.asked, self.options = asked, options
        self.seconds = {}
        self.plan = None
        self.placement = None
        self._compiled = None
        start = time.perf_counter()
        self._numbers = len(state.options)
        self._lifted = Lifted()
        examples = [_example(t) for t in state.tensors] + state.numbers() + [_example(t) for t in call.tensors]
        for _ in range(3):
            self.jaxpr = self._trace(fn, state, call, [_SEED, *examples])
            if self._lifted.complete:
                break
        self.slots = [_slot((i,), state, {}) for i in range(len(state.tensors))]
        self._plain = True
        now = time.perf_counter()
        self.seconds["trace"] = now - start
        rest = call.tensors + self._lifted.tensors
        layouts = [None, *(t._layout for t in state.tensors), *[None] * self._numbers, *(t._layout for t in rest)]
        flat = normalise(self.jaxpr)
        pins, replaced = _return_home(flat, self.written, [self.slots[i].layout for i in self.written])
        planner = Planner(flat, layouts, pins, replaced, options.cost, options.lowering, rule, asked)
        self.pipeline = planner.plan()
        post = self.pipeline.post
        self._outs = post.outvars
        self.in_layouts = layouts
        self.out_layouts = [
            planned if (planned := self.pipeline.layouts.get(v) if isinstance(v, Var) else None) is not None else None
            for v in self._outs
        ]
        self._state_layouts = self.out_layouts[: len(self.written)]
        place_of = {v: i - 1 for i, v in enumerate(flat.invars)}
        self._donated = [place_of[t.task.ins[k]] for t in post.tasks for k in t.donate]
        self.driver = Driver(self.pipeline)
        self.seconds["plan"] = time.perf_counter() - now
        if self.pipeline.body is None and state.optimizers:
            log.warning(
                "%s: its %d stages work one after the other, since a step is one batch; "
                "config.set_gradient_accumulation_steps(M) lets them work on M micro-batches at once",
                asked,
                len(self.pipeline.stages),
            )

    def compile(self, to_run: bool = False):
        """Compile all tasks.

        Args:
            to_run: accepted; what runs is the same.
        """
        if self._compiled is None:
            start = time.perf_counter()
            self.driver.compile()
            self._compiled = self.driver
            self.seconds["compile"] = time.perf_counter() - start
        return self._compiled

    def run(self, state: State, arguments: list):
        """Run a step, write the new state, and return the function's result."""
        self.compile()
        tensors: list[Tensor] = state.tensors
        generator = default_generator
        seed = np.array((generator._seed, generator._counter), np.int64) if self.is_random else _NO_SEED
        arrays = [t._fresh()._array for t in tensors]
        for i in self._donated:
            # Held by its tensor, its cell and the list; what somebody else holds too must survive.
            if sys.getrefcount(arrays[i]) > _UNSHARED + (tensors[i]._cell is not None):
                arrays[i] = jnp.copy(arrays[i])
        given = [t._fresh()._array for t in (*arguments, *self._lifted.tensors)]
        numbers = state.numbers()
        with Uninterrupted():
            inputs = [seed, *arrays, *numbers, *given]
            del arrays, given
            outs = self.driver.run(inputs, self._outs)
            self._write(tensors, outs[: len(self.written)])
        if self.is_random:
            generator._counter += 1
        return self._results(outs[len(self.written) :])


def _return_home(flat, places: list[int], layouts: list[Layout | None]) -> tuple[dict[Var, tuple], dict[Var, Var]]:
    """Let state that is written end on its own placement.

    Args:
        flat: the program; its first outputs are the state.
        places: of each of them the number of its input among the state.
        layouts: their layouts.

    Returns:
        Output → the nd-sbp that it has to have there, and output → the input whose place it takes.
    """
    pins: dict[Var, tuple] = {}
    replaced: dict[Var, Var] = {}
    for i, (place, layout) in enumerate(zip(places, layouts, strict=True)):
        v = flat.outvars[i]
        if layout is None or not isinstance(v, Var):
            continue
        pins[v], replaced[v] = layout.sbp, flat.invars[1 + place]
        flat.outvars[i] = Var(v.aval)
        params = {"source": layout.placement, "target": layout.placement}
        flat.eqns.append(core.new_jaxpr_eqn([v], [flat.outvars[i]], stage_transfer_p, params, core.no_effects))
    return pins, replaced
