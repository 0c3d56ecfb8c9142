"""`PipelinedProgram`: a traced step whose state lies on several placements, run as a pipeline of stages."""

from __future__ import annotations

import copy
import logging
import re
import sys
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core
from jax.extend.core import Var, jaxpr_as_fun

from sbpjax import calls, world
from sbpjax.errors import GraphConfigError, GraphError, message
from sbpjax.graph.agreement import agree
from sbpjax.graph.capture import Lifted, State
from sbpjax.graph.interrupt import Uninterrupted
from sbpjax.graph.program import _NO_SEED, _SEED, _UNSHARED, Options, Program, _example, _slot
from sbpjax.graph.signature import Call
from sbpjax.graph.slots import Slot
from sbpjax.graph.zero import Zero
from sbpjax.sbp import spread
from sbpjax.sbp.layout import Layout
from sbpjax.sbp.normalise import normalise
from sbpjax.sbp.placement import one_per_process
from sbpjax.sbp.stage import stage_transfer_p
from sbpjax.tensor import Tensor
from sbpjax.tensor.generator import default_generator

from . import sizes
from .driver import Driver
from .plan import Pipeline, Planner
from .sizes import PipelineMemory, PipelineTraffic

log = logging.getLogger("sbpjax.pipeline")
_REPORT_S = 2.0  # a process that fails tells so first; `sbpjax.processes.failure` ends this one after three seconds


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
        if world.current().size > jax.process_count():
            raise GraphError(
                message(
                    asked,
                    f"stages on several placements, and {world.current().size} threads as ranks",
                    "the driver of a pipeline runs in one thread of each process",
                    "leave sbpjax.simulate out, or start processes: python -m sbpjax.distributed.launch",
                )
            )
        self.asked, self.options = asked, options
        self._agreed = self._met = False
        self.seconds = {}
        self.plan = None
        self.placement = None
        self._compiled = None
        start = time.perf_counter()
        self._numbers = len(state.options)
        self._names = tuple(name for _, name in state.options)
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
        """Compile the tasks of this process.

        Args:
            to_run: it is about to run: if there are several processes, they compare it first.
        """
        if to_run and not self._agreed:
            self._agree()
        if self._compiled is None:
            start = time.perf_counter()
            self.driver.compile()
            self._compiled = self.driver
            self.seconds["compile"] = time.perf_counter() - start
        return self._compiled

    def _agree(self) -> None:
        """Compare the program with those of the other processes: each of them runs a part of one schedule."""
        layouts = zip(self.pipeline.program.invars, self.in_layouts, strict=True)
        inputs = [str(v.aval) if layout is None else repr(layout) for v, layout in layouts]
        text = "\n".join([str(self.jaxpr), *(str(t.out_layouts) for t in self.pipeline.compiled)])
        body = self.pipeline.body
        text = re.sub(r"0x[0-9a-f]+", "", text) + ("" if body is None else f"\n{body.schedule}")
        agree(self.asked, inputs, text)
        self._agreed = True
        owners = range(jax.process_count())
        asked = re.sub("_[0-9]+", "", self.asked)
        self._together = calls.call_of(owners, asked, text, numbered=True, names=self._names)

    def run(self, state: State, arguments: list):
        """Run a step, write the new state, and return the function's result."""
        self.compile(to_run=True)
        if not self._met:
            asked = f"the first step of {re.sub('_[0-9]+', '', self.asked)}"
            self.driver.meet(lambda: world.current().exchange(asked, None))
            self._met = True
        numbers = state.numbers()
        if self._together is not None:
            self._together.note(tuple(numbers))
        tensors: list[Tensor] = state.tensors
        generator = default_generator
        seed = np.array((generator._seed, generator._counter), np.int64) if self.is_random else _NO_SEED
        if self.is_random and self.driver.courier.far:  # a process that drew numbers of its own has counted on
            everyone = one_per_process(self.pipeline.stages[0].type)
            seed = np.asarray(spread.from_first(seed, everyone).addressable_data(0))
        arrays = [t._fresh()._array for t in tensors]
        for i in self._donated:
            # Held by its tensor, its cell and the list; what somebody else holds too must survive.
            shared = sys.getrefcount(arrays[i]) > _UNSHARED + (tensors[i]._cell is not None)
            if shared and arrays[i].sharding.addressable_devices:
                arrays[i] = jnp.copy(arrays[i])
        given = [t._fresh()._array for t in (*arguments, *self._lifted.tensors)]
        with Uninterrupted():
            inputs = [seed, *arrays, *numbers, *given]
            del arrays, given
            try:
                outs = self.driver.run(inputs, self._outs)
            except jax.errors.JaxRuntimeError as error:
                if not self.driver.courier.far:
                    raise
                raise world.lost(self.asked, [], range(world.current().size), _what_failed(error)) from None
            self._write(tensors, outs[: len(self.written)])
        if self.is_random:
            generator._counter += 1
        return self._results(outs[len(self.written) :])

    def memory(self, state: State, compiled: bool) -> PipelineMemory:
        """Return what one device per stage holds; see `sbpjax.pipeline.sizes.memory`."""
        return sizes.memory(self, state, compiled)

    def traffic(self) -> PipelineTraffic:
        """Return what a step moves per stage; see `sbpjax.pipeline.sizes.traffic_of`."""
        return sizes.traffic_of(self)

    def sequential(self) -> Program:
        """Return the same trace as one program on one device, where moving between stages does nothing."""
        found: Any = copy.copy(self)
        found.pipeline = found.placement = found.plan = None
        found.slots = [Slot(slot.places, None, True) for slot in self.slots]
        found.in_layouts = [None] * len(self.in_layouts)
        found.out_layouts = [None] * len(self.out_layouts)
        found._global_outs = [False] * len(self._global_outs)
        avals = self.jaxpr.in_avals
        found._structs = [jax.ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type) for a in avals]
        found._call = jax.jit(jaxpr_as_fun(self.jaxpr), donate_argnums=tuple(1 + i for i in self.written))
        return found


def _what_failed(error: Exception) -> str:
    """Return what another process reported, or after a while what its absence did to a transfer."""
    end = time.monotonic() + _REPORT_S
    while world.current().failure is None and time.monotonic() < end:
        time.sleep(0.05)
    return world.current().failure or f"another process is gone: {str(error).splitlines()[0]}"


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
