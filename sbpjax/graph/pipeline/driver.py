"""Pipeline driver: issues tasks in the order of the schedule, and moves values between stages.

Launches return before the work is done, so one thread keeps all stages busy. The schedule bounds the work in flight:
before a stage takes a micro-batch in, it waits for the end of an earlier one, whose place it takes. In a run of several
processes each of them issues the tasks on its own devices, and its ends of the transfers (`p2p_transfer`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sbpjax._core.compiler.gspmd import physical_array
from sbpjax._core.jax_private import FOUND_NAN, Literal, Var
from sbpjax._core.programs.normalise import evaluate, live_equations
from sbpjax._core.runtime.ambient_mesh import jit_without_mesh
from sbpjax._core.runtime.compilation_cache import compile_cached, compile_uncached
from sbpjax.errors import NanError
from sbpjax.graph.program.outputs import nan_error
from sbpjax.sbp import multi_host
from sbpjax.sbp.layout import Layout

from .p2p_transfer import P2PTransfer, PendingReceive, Shipment, connect_placement, make_remote_array, owns_device
from .plan import Body, Pipeline, Run
from .relocate import relocate_program
from .schedule import FORWARD
from .task import CompiledTask, replicated_layout


class Driver:
    """Runs one pipeline.

    Args:
        pipeline: the planned pipeline.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        placements = list(dict.fromkeys([*pipeline.stages, *(t.task.placement for t in pipeline.compiled)]))
        self.courier = P2PTransfer(pipeline.layouts, placements)
        self._numbers: dict = {}
        self._starts: dict[Var, Any] = {}
        self._iterations: list[dict] = []

    def compile(self) -> None:
        """Compile this process's tasks, two at a time, and those that are equal but for their devices once."""
        groups: dict[tuple, list] = {}
        for task in self.pipeline.compiled:
            place = task.task.placement
            if owns_device(place):
                lowered = task.program.lower()
                groups.setdefault((lowered.as_text(), place.type, place.hierarchy), []).append((task, lowered))
        with ThreadPoolExecutor(2) as pool:  # the compiler leaves Python alone
            list(pool.map(_compile_equal, groups.values()))
        body = self.pipeline.body
        if body is not None:
            self._prepare(body)

    def meet(self, agreed: Callable[[], Any]) -> None:
        """Compile the transfers between processes and connect the processes of each program, before the first step.

        Args:
            agreed: called when this process is ready; it returns when all are.
        """
        if not self.courier.far:
            return
        parcels = [p for run in self.pipeline.runs for s in (run.first, *run.sends) for p in self.courier.parcels(s)]
        agreed()
        for placement in dict.fromkeys(t.task.placement for t in self.pipeline.compiled):
            if placement.spans_processes and owns_device(placement):
                # Gloo connects processes at the first program that needs them, with a time limit; tasks of unlike
                # stages reach theirs at unlike times.
                connect_placement(placement)
        for parcel in parcels:
            if isinstance(parcel, Shipment):
                parcel.warm_up()

    def _prepare(self, body: Body) -> None:
        """Make the parts that every step needs again."""
        places = [p for p in self.pipeline.stages if owns_device(p)]
        self._iterations = [
            {
                p: multi_host.put_replicated(np.int32(i), replicated_layout(p, body.iteration.aval).sharding)
                for p in places
            }
            for i in range(body.count)
        ]
        self._starts = {
            c.before: _start(self.pipeline, c, body.starts[c.before])
            for c in body.carries
            if c.before in body.starts and owns_device(body.starts[c.before].placement)
        }
        works = body.schedule.works
        carried = {c.before for c in body.carries if c.after is not c.before}
        self._sent_once = [s for s in body.first if s.value not in carried]
        self._sent_each = [s for s in body.first if s.value in carried]
        fixed = {*body.outer, *(s.arrived for s in self._sent_once), *(c.before for c in body.carries)} - carried
        self._holes = [
            [(i, None if v is body.iteration else v) for i, v in enumerate(t.task.ins) if v not in fixed]
            for t in body.tasks
        ]
        self._after = {c.after: c.before for c in body.carries if c.before in carried}
        entry = {w.stage: i for i, w in reversed(list(enumerate(works)))}
        # A stage that begins with a forward takes in no more micro-batches than it has credits; others work them off.
        self._gates = {i: s for s, i in entry.items() if works[i].kind == FORWARD}
        self._exits = {max(i for i, w in enumerate(works) if w.stage == s): s for s in entry}
        self._events = self._order_actions(body)

    def _order_actions(self, body: Body) -> list[tuple[int, int, bool, bool]]:
        """Return this process's actions in order: task, micro-batch, whether to run it, whether to send its results."""
        # Within a process a send is issued with its task; between processes both sides have it in the schedule's order.
        assert body.schedule is not None
        if not self.courier.far:
            return [(work, micro, True, True) for work, micro, _, _ in body.schedule.slots]
        mine = [owns_device(t.task.placement) for t in body.tasks]
        sending = [bool(self.courier.parcels(sends)) for sends in body.sends]
        return [(work, micro, runs, not runs) for work, micro, runs in body.schedule.events(mine, sending)]

    # -- one step --------------------------------------------------------------------------------------------------

    def run(self, inputs: Sequence) -> tuple[dict, list[tuple[CompiledTask, list]]]:
        """Run a step as far as it takes over no state.

        Args:
            inputs: the payload of every input of the program; numbers as they are.

        Returns:
            The payload of every variable, for `out`; and the remaining tasks, which take over state, with their
            arguments: nothing else reads their results.
        """
        env: dict = dict(zip(self.pipeline.program.invars, inputs, strict=True))
        self.courier.drain()
        self._run_tasks(self.pipeline.pre, env)
        if self.pipeline.body is not None:
            self._micro_batches(self.pipeline.body, env)
        left = self._run_tasks(self.pipeline.post, env)
        self.courier.wait()
        return env, left

    def out(self, v, env: dict):
        """Return the payload of an output, or a stand-in for one of another process."""
        if isinstance(v, Literal):
            return jnp.asarray(v.val, v.aval.dtype)
        layout = self.pipeline.layouts.get(v)
        if layout is not None and not owns_device(layout.placement):
            return make_remote_array(layout)
        value = env[v]
        return value.array() if value.__class__ is PendingReceive else value

    def finish(self, left: list[tuple[CompiledTask, list]], env: dict) -> None:
        """Run the tasks left by `run`, without an exchange."""
        for task, arguments in left:
            self._run(task, arguments, env)

    def _run_tasks(self, run: Run, env: dict) -> list[tuple[CompiledTask, list]]:
        """Run tasks, and return those that take over state with their arguments."""
        left = []
        self.courier.send(run.first, env)
        for task, sends in zip(run.tasks, run.sends, strict=True):
            place = task.task.placement
            if owns_device(place):
                arguments = [self._place_input(v, env, place) for v in task.task.ins]
                if task.donate:
                    left.append((task, arguments))
                else:
                    self._run(task, arguments, env)
                # At once: an argument that nothing else holds is memory that the next task may need.
                del arguments
            self.courier.send(sends, env)
        return left

    def _run(self, task: CompiledTask, arguments: list, env: dict) -> None:
        executable: Any = task.executable
        try:
            results = executable(*arguments)
        except FOUND_NAN as error:
            raise self._nan(error, task.task.placement, "the code around the micro-batches") from None
        env.update(zip(task.task.outs, results, strict=False))

    def _place_input(self, v: Var, env: dict, place):
        """Return an input of a task: an array as it is, a number on the devices of the task."""
        value = env[v]
        if v in self.pipeline.layouts:
            if value.__class__ is PendingReceive:
                value = env[v] = value.array()
            return value
        key = (v, place)
        known = self._numbers.get(key)
        same = known is not None and (known[0] is value or (isinstance(value, float) and known[0] == value))
        if not same:
            array = multi_host.put_replicated(
                np.asarray(value, v.aval.dtype), replicated_layout(place, v.aval).sharding
            )
            known = self._numbers[key] = (value, array)
        return known[1]

    def _micro_batches(self, body: Body, env: dict) -> None:
        schedule, courier = body.schedule, self.courier
        iterations, rows = self._begin_inputs(body, env)
        done: list[dict[int, object]] = [{} for _ in range(schedule.stages)]  # micro-batch → ready when it is out
        # Values that a task made for other processes, until its send is due.
        waiting: dict[tuple[int, int], list] = {}
        for work, micro, runs, sends in self._events:
            own = iterations[micro]
            if not runs:
                for parcel, arrays in waiting.pop((work, micro), None) or self._take_parcels(body, work, own):
                    courier.move(parcel, arrays, own)
                continue
            stage = self._gates.get(work)
            if stage is not None:
                # Launches return at once, so without this wait the host would issue all micro-batches, and a stage hold
                # the activations of all.
                jax.block_until_ready(done[stage].pop(micro - schedule.in_flight[stage], None))
            task = body.tasks[work]
            arguments = rows[work].copy()
            for i, v in self._holes[work]:
                value = self._iterations[micro][task.task.placement] if v is None else own[v]
                arguments[i] = value.array() if value.__class__ is PendingReceive else value
            try:
                results = task.executable(*arguments)
            except FOUND_NAN as error:
                label = f"{schedule.works[work].kind} of micro-batch {micro}"
                raise self._nan(error, task.task.placement, label) from None
            del arguments
            following = iterations[micro + 1]
            for v, array in zip(task.task.outs, results, strict=False):
                own[v] = array
                if v in self._after:
                    following[self._after[v]] = array
            stage = self._exits.get(work)
            if stage is not None:
                done[stage][micro] = results[-1]
                if stage not in self._gates.values():
                    done[stage].pop(micro - 1, None)
            del results
            if sends:
                courier.send(body.sends[work], own)
            elif body.sends[work]:
                waiting[work, micro] = self._take_parcels(body, work, own)
            # Makes the schedule's bound a bound of memory: an activation goes when the last task that reads it is
            # issued.
            for v in body.dropped[work]:
                own.pop(v, None)
        # The rest takes over the memory of the state, so it starts when no stage can fail any more.
        jax.block_until_ready(done)
        for c in body.carries:
            last = iterations[-1] if c.before in iterations[-1] else iterations[0]
            if c.before in last:
                env[c.last] = last[c.before]

    def _nan(self, error: Exception, place: Any, label: str) -> NanError:
        stages = self.pipeline.stages
        return nan_error(f"stage {stages.index(place) if place in stages else repr(place)}, {label}", error)

    def _take_parcels(self, body: Body, work: int, own: dict) -> list:
        return [(parcel, parcel.arrays_to_send(own)) for parcel in self.courier.parcels(body.sends[work])]

    def _begin_inputs(self, body: Body, env: dict) -> tuple[list[dict], list[list]]:
        """Return the known inputs of each micro-batch, and per task its arguments, with holes for varying ones."""
        iterations: list[dict] = [{} for _ in range(body.count + 1)]
        for c in body.carries:
            start = self._starts.get(c.before)
            if start is not None:
                iterations[0][c.before] = start(env)
            elif c.before not in body.starts and c.start in env:
                iterations[0][c.before] = env[c.start]
        constant = {own: env[v] for own, v in body.outer.items() if v in env}
        first = iterations[0]
        constant |= {c.before: first[c.before] for c in body.carries if c.after is c.before and c.before in first}
        self.courier.send(self._sent_once, constant)
        self.courier.send(self._sent_each, iterations[0])
        rows = []
        for task in body.tasks:
            place = task.task.placement
            if owns_device(place):
                rows.append([self._place_input(v, constant, place) if v in constant else None for v in task.task.ins])
            else:
                rows.append([])
        return iterations, rows


def _compile_equal(group: list) -> None:
    (first, lowered), *others = group
    place = first.task.placement
    # Only programs of XLA:CPU can be moved to other devices (`relocate`).
    if place.type != "cpu" or place.spans_processes or all(t.task.placement == place for t, _ in others):
        for task, own in group:
            task.executable = compile_cached(own)
        return
    first.executable = compile_uncached(lowered)
    source = list(first.task.placement.devices.flat)
    for task, own in others:
        task.executable = None
        if not task.task.placement.spans_processes:
            task.executable = relocate_program(first.executable, source, list(task.task.placement.devices.flat))
        if task.executable is None:
            task.executable = compile_cached(own)


def _start(pipeline: Pipeline, carry, layout: Layout):
    """Return a function of known values that makes a carry's first input: zeros, or a value without placement."""
    eqns = live_equations(pipeline.free, [carry.start])
    read = {carry.start, *(v for eqn in eqns for v in eqn.invars if isinstance(v, Var))}
    sources = [v for v in pipeline.program.invars if v in read]

    def make(*values):
        if carry.start is None:
            return jnp.zeros(layout.physical_shape, layout.dtype)
        env = {**pipeline.program.consts, **dict(zip(sources, values, strict=True))}
        evaluate(eqns, env)
        value = carry.start.val if isinstance(carry.start, Literal) else env[carry.start]
        return physical_array(jnp.broadcast_to(jnp.asarray(value, layout.dtype), layout.shape), layout)

    run = jit_without_mesh(make, out_shardings=layout.sharding)
    return lambda env: run(*[env[v] for v in sources])
