"""`PipelinedProgram`: a traced step over several placements, run as a pipeline of stages."""

from __future__ import annotations

import copy
import logging
import re
import sys
import time
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any

import jax
import numpy as np

from sbpjax._core.compiler.launch import checks_results, copy_array
from sbpjax._core.jax_private import Var, jaxpr_as_fun, new_jaxpr_eqn, no_effects
from sbpjax._core.programs.normalise import Program as FlatProgram
from sbpjax._core.runtime import collective_trace, processes
from sbpjax._core.runtime.ambient_mesh import jit_without_mesh
from sbpjax._core.runtime.progress import show_phase
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.creation.generator import default_generator
from sbpjax._core.tensor.storage.exchange import Plan, Run, advance_counter, exchange
from sbpjax._core.tensor.storage.payload import is_shared, payloads
from sbpjax._core.tracing.capture import State
from sbpjax._core.tracing.signature import Call
from sbpjax._core.tracing.step import TracedStep
from sbpjax.errors import GraphConfigError, GraphError
from sbpjax.graph.program.agreement import check_same_program
from sbpjax.graph.program.outputs import Outputs
from sbpjax.graph.program.passes import run_passes
from sbpjax.graph.program.program import NO_SEED, UNSHARED, Options, log_change
from sbpjax.graph.program.slots import StateSlot
from sbpjax.graph.program.zero import Zero
from sbpjax.sbp import multi_host
from sbpjax.sbp.layout import Layout
from sbpjax.sbp.placement import one_per_process
from sbpjax.sbp.stage import stage_transfer_p

from .driver import Driver
from .plan import Pipeline, Planner

log = logging.getLogger("sbpjax.pipeline")
# a failing process reports first; `sbpjax.distributed.rendezvous.failure` ends this one after three seconds
_REPORT_S = 2.0


class PipelinedProgram:
    """One traced step, cut into stages, planned and compiled.

    Args:
        fn: the function.
        state: the tensors that it may change.
        call: the arguments to trace with; only their facts count.
        options: how to compile.
        operation: the user's request, for messages.
        zero: the state that is stored divided over the data-parallel ranks.
        rule: the schedule, see `sbpjax.graph.pipeline.schedule`.

    Attributes:
        jaxpr: the traced program, in the logical view.
        flat: the same, flat, before it is cut into stages.
        pipeline: the tasks, their transfers, and the schedule.
        slots: how it takes the state's tensors, one per input.
        written: the numbers of the slots that it writes.
        captured: the tensors that the function reads without being given them.
        in_layouts: the layouts of its inputs; None for numbers and seeds.
        out_layouts: the layouts of its outputs.
        outputs: puts the outputs where they belong.
        seconds: how long each phase took: ``trace``, ``plan``, ``compile``.
        change: as for other programs.
        plan: None: every task has its own.
        placement: None: every stage has its own.
        host_inputs: None: a pipeline is refused lookups that the host works out.
    """

    plan = placement = requested_codes = host_inputs = None
    # The module calls of a graph's trace, and its arguments without data, for `repr`.
    scope: Any
    arguments: Any
    # Records its runs, if several processes run it.
    _together: Any = None

    def __init__(
        self, fn: Callable, state: State, call: Call, options: Options, operation: str, zero: Zero | None, rule
    ) -> None:
        if zero is not None and zero.per_use:
            raise GraphConfigError(
                operation,
                "enable_zero(stage=3) with parameters on several placements",
                "a pipeline divides optimizer state and gradients; parameters are divided by its stages",
                "config.enable_zero(True, stage=2)",
            )
        if processes.current().size > jax.process_count():
            raise GraphError(
                operation,
                f"stages on several placements, and {processes.current().size} threads as ranks",
                "the driver of a pipeline runs in one thread of each process",
                "leave sbpjax.simulate out, or start processes: python -m sbpjax.distributed.launch",
            )
        self.operation, self.options = operation, options
        self._agreed = self._met = False
        self.seconds: dict[str, float] = {}
        self.change = ""
        self._compiled: Driver | None = None
        start = time.perf_counter()
        self.number_names = tuple(name for _, name in state.options)
        with show_phase(operation, "tracing"):
            traced = TracedStep(fn, state, call, operation)
        self.captured, self.is_random = traced.captured, traced.is_random
        self.jaxpr, self.flat, self.slots, self.written = run_passes(traced, state, {})
        now = time.perf_counter()
        self.seconds["trace"] = now - start
        rest = call.tensors + self.captured
        layouts = [
            None,
            *(t.layout for t in state.tensors),
            *[None] * len(self.number_names),
            *(t.layout for t in rest),
        ]
        flat, pins, replaced = _return_home(self.flat, self.written, [self.slots[i].layout for i in self.written])
        given = dict(options.compiler_options)
        planner = Planner(flat, layouts, pins, replaced, options.cost, options.lowering, rule, operation, given)
        with show_phase(operation, "planning"):
            self.pipeline: Pipeline = planner.plan()
        post = self.pipeline.post
        self._outs = post.outvars
        self.in_layouts = layouts
        self.out_layouts = [self.pipeline.layouts.get(v) if isinstance(v, Var) else None for v in self._outs]
        are_global = [layout is not None for layout in traced.layouts]
        self.outputs = Outputs(self.slots, self.written, self.out_layouts, traced.results, are_global, left=traced.left)
        self.unsettled = traced.text() if traced.stores else None
        place_of = {v: i - 1 for i, v in enumerate(flat.invars)}
        self._donated = [place_of[t.task.ins[k]] for t in post.tasks for k in t.donate]
        self.driver = Driver(self.pipeline)
        self.seconds["plan"] = time.perf_counter() - now
        if self.pipeline.body is None and state.optimizers:
            log.warning(
                "%s: its %d stages work one after the other, since a step is one batch; "
                "config.set_gradient_accumulation_steps(M) lets them work on M micro-batches at once",
                operation,
                len(self.pipeline.stages),
            )
        body = self.pipeline.body
        if rule == "interleaved" and body is not None and not body.schedule.has_chunks:
            log.warning(
                '%s: set_pipeline("interleaved") is 1F1B here, since each of its %d stages is visited once; '
                "auto_stages(..., chunks=2), or a second to_global(placement=) to the first stage, makes chunks",
                operation,
                len(self.pipeline.stages),
            )

    @property
    def is_compiled(self) -> bool:
        """Whether `compile` ran."""
        return self._compiled is not None

    def compile(self, to_run: bool = False):
        """Compile the tasks of this process.

        Args:
            to_run: it is about to run: if there are several processes, they compare it first.
        """
        if to_run and not self._agreed:
            self._agree()
        if self._compiled is None:
            start = time.perf_counter()
            with show_phase(self.operation, "compiling"):
                self.driver.compile()
            self._compiled = self.driver
            self.seconds["compile"] = time.perf_counter() - start
            log_change(self)
        return self._compiled

    def _agree(self) -> None:
        """Compare the program with those of the other processes: each of them runs a part of one schedule."""
        layouts = zip(self.pipeline.program.invars, self.in_layouts, strict=True)
        inputs = [str(v.aval) if layout is None else repr(layout) for v, layout in layouts]
        text = "\n".join([str(self.jaxpr), *(str(t.out_layouts) for t in self.pipeline.compiled)])
        body = self.pipeline.body
        # A printed jaxpr names functions by their addresses, which differ from process to process.
        text = re.sub(r"0x[0-9a-f]+", "", text) + ("" if body is None else f"\n{body.schedule}")
        check_same_program(self.operation, inputs, text)
        self._agreed = True
        owners = range(jax.process_count())
        operation = re.sub("_[0-9]+", "", self.operation)
        self._together = collective_trace.call_of(owners, operation, text, numbered=True, names=self.number_names)

    def run(self, state: State, arguments: list, done: list | None = None):
        """Run a step, write the new state, and return the function's result; see `Program.run`."""
        done = [] if done is None else done
        self.compile(to_run=True)
        if not self._met:
            operation = f"the first step of {re.sub('_[0-9]+', '', self.operation)}"
            # After the compilation, whose time differs between processes: connections have a time limit, and an
            # exchange waits.
            self.driver.meet(lambda: processes.current().exchange(operation, None))
            self._met = True
        numbers = state.numbers()
        if self._together is not None:
            self._together.note(tuple(numbers))
        tensors: list[Tensor] = state.tensors
        generator = default_generator
        seed = np.array((generator._seed, generator._counter), np.int64) if self.is_random else NO_SEED
        # A process that drew numbers of its own has counted on.
        if self.is_random and self.driver.courier.far:
            everyone = one_per_process(self.pipeline.stages[0].type)
            seed = np.asarray(multi_host.replicate_from_first(seed, everyone).addressable_data(0))
        # Python looks at unwritten outputs in an exchange: an interrupt there would lose the state that was taken over.
        kept = checks_results() or self.outputs.plan(tensors) is None
        arrays = payloads(tensors)
        for i in self._donated:
            # Held by its tensor, its cell and the list; arrays with another owner must survive.
            shared = kept or sys.getrefcount(arrays[i]) > UNSHARED + is_shared(tensors[i])
            if shared and arrays[i].sharding.addressable_devices:
                arrays[i] = copy_array(arrays[i])
        inputs = [seed, *arrays, *numbers, *payloads((*arguments, *self.captured))]
        del arrays
        driver, count = self.driver, len(self.written)
        try:
            env, left = driver.run(inputs)
            if kept:
                driver.finish(left, env)
                new = [driver.out(v, env) for v in self._outs[:count]]
                self.outputs.write(tensors, new, self._count_random(), map(done.append, (True,)))
            else:
                self._exchange(tensors, env, left, done)
        # Which transfer broke has no meaning: another process is gone, and its own report comes with the next exchange.
        except jax.errors.JaxRuntimeError as error:
            if not driver.courier.far:
                raise
            raise processes.lost_rank_error(
                self.operation, [], range(processes.current().size), _find_failure(error)
            ) from None
        return self.outputs.rebuilt([driver.out(v, env) for v in self._outs[count:]], state)

    def _exchange(self, tensors: list[Tensor], env: dict, left: list, done: list) -> None:
        """Run the remaining tasks and write the whole state; their results go into ``env`` too."""
        made = {v: (number, place) for number, (task, _) in enumerate(left) for place, v in enumerate(task.task.outs)}
        plans, others, arrays = [Plan() for _ in left], Plan(), []
        for i, v, layout in zip(self.written, self._outs, self.outputs.state_layouts, strict=False):
            if isinstance(v, Var) and v in made:
                number, place = made[v]
                plans[number].add(tensors[i], place, layout)
            else:
                others.add(tensors[i], len(arrays), layout)
                arrays.append(self.driver.out(v, env))
        runs = [Run(task.launcher, given, plan) for (task, given), plan in zip(left, plans, strict=True)]
        exchange(*runs, also=lambda: chain(*others.steps(arrays), self._count_random()), done=done)
        for (task, _), run in zip(left, runs, strict=True):
            env.update(zip(task.task.outs, run.outs, strict=False))

    def _count_random(self) -> Iterable:
        return advance_counter(default_generator) if self.is_random else ()

    def sequential(self) -> Any:
        """Return the same trace as one program on one device, where moving between stages does nothing, for export."""
        # A shallow copy: export reads the trace, the layouts and the outputs of it, and runs nothing.
        found: Any = copy.copy(self)
        found.pipeline = None
        found.slots = [StateSlot(slot.places, None) for slot in self.slots]
        found.in_layouts = [None] * len(self.in_layouts)
        found.out_layouts = [None] * len(self.out_layouts)
        found.outputs = Outputs(
            found.slots, self.written, found.out_layouts, self.outputs.results, [False] * len(self.outputs.are_global)
        )
        avals = self.jaxpr.in_avals
        found.structs = [jax.ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type) for a in avals]
        found.call = jit_without_mesh(jaxpr_as_fun(self.jaxpr), donate_argnums=tuple(1 + i for i in self.written))
        return found


def _find_failure(error: Exception) -> str:
    """Return the report of another process, or after a while the effect of its absence on a transfer."""
    end = time.monotonic() + _REPORT_S
    while processes.current().failure is None and time.monotonic() < end:
        time.sleep(0.05)
    return processes.current().failure or f"another process is gone: {str(error).splitlines()[0]}"


def _return_home(
    program: FlatProgram, places: list[int], layouts: list[Layout | None]
) -> tuple[FlatProgram, dict[Var, tuple], dict[Var, Var]]:
    """Let state that is written end on its own placement.

    Args:
        program: the program; its first outputs are the state.
        places: of each of them the number of its input among the state.
        layouts: their layouts.

    Returns:
        The program, output → the nd-sbp that it has to have there, and output → the input whose place it takes.
    """
    pins: dict[Var, tuple] = {}
    replaced: dict[Var, Var] = {}
    eqns, outvars = list(program.eqns), list(program.outvars)
    for i, (place, layout) in enumerate(zip(places, layouts, strict=True)):
        v = outvars[i]
        if layout is None or not isinstance(v, Var):
            continue
        pins[v], replaced[v] = layout.sbp, program.invars[1 + place]
        outvars[i] = Var(v.aval)
        # To its own placement: this moves nothing, unless the update ran on another stage, as of a weight that two
        # stages share.
        params = {"source": layout.placement, "target": layout.placement}
        eqns.append(new_jaxpr_eqn([v], [outvars[i]], stage_transfer_p, params, no_effects))
    return FlatProgram(program.invars, program.consts, eqns, outvars), pins, replaced
