"""Runs a planned pipeline: issues its tasks in the order of the schedule, and moves values between stages.

Launches return before the work is done, so one thread keeps all stages busy. What bounds the work in flight is the
schedule: before a stage takes a micro-batch in, it waits for the one to be out whose place it takes.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Literal, Var

from sbpjax.sbp.layout import Layout
from sbpjax.sbp.normalise import evaluate
from sbpjax.sbp.program_cache import compiled_afresh

from .plan import Body, Pipeline, Run
from .relocate import relocated
from .schedule import FORWARD
from .task import replicated


class Driver:
    """Runs one pipeline.

    Args:
        pipeline: what was planned.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        self._numbers: dict = {}
        self._starts: dict[Var, object] = {}
        self._turns: list[dict] = []
        self.trace: list[tuple] | None = None  # (task, micro-batch, seconds) if tasks are to be timed

    def compile(self) -> None:
        """Compile all tasks, two at a time, and those that are equal but for their devices once."""
        groups: dict[tuple, list] = {}
        for task in self.pipeline.compiled:
            lowered = task.program.lower()
            place = task.task.placement
            groups.setdefault((lowered.as_text(), place.type, place.hierarchy), []).append((task, lowered))
        with ThreadPoolExecutor(2) as pool:  # the compiler leaves Python alone
            list(pool.map(_compile_equal, groups.values()))
        body = self.pipeline.body
        if body is not None:
            self._prepare(body)

    def _prepare(self, body: Body) -> None:
        """Make what every step needs again: numbers of the turns, and programs for what carries start as."""
        places = self.pipeline.stages
        self._turns = [
            {p: jax.device_put(np.int32(i), replicated(p, body.turn.aval).sharding) for p in places}
            for i in range(body.count)
        ]
        self._starts = {
            c.before: _start(self.pipeline, c, body.starts[c.before]) for c in body.carries if c.before in body.starts
        }

    # -- one step --------------------------------------------------------------------------------------------------

    def run(self, inputs: Sequence, outs: Sequence) -> list:
        """Run a step.

        Args:
            inputs: the payload of every input of the program; numbers as they are.
            outs: the outputs wanted: variables.

        Returns:
            Their payloads.
        """
        env: dict = dict(zip(self.pipeline.program.invars, inputs, strict=True))
        self._once(self.pipeline.pre, env)
        if self.pipeline.body is not None:
            self._micro_batches(self.pipeline.body, env)
        self._once(self.pipeline.post, env)
        return [self._out(v, env) for v in outs]

    def _out(self, v, env: dict):
        return jnp.asarray(v.val, v.aval.dtype) if isinstance(v, Literal) else env[v]

    def _once(self, run: Run, env: dict) -> None:
        self._send(run.first, env)
        for task, sends in zip(run.tasks, run.sends, strict=True):
            place = task.task.placement
            results = task.executable(*[self._given(v, env, place) for v in task.task.ins])
            env.update(zip(task.task.outs, results, strict=False))
            self._send(sends, env)

    def _given(self, v: Var, env: dict, place):
        """Return what a task reads: an array as it is, a number on the devices of the task."""
        value = env[v]
        if v in self.pipeline.layouts:
            return value
        key = (v, place)
        known = self._numbers.get(key)
        same = known is not None and (known[0] is value or (isinstance(value, float) and known[0] == value))
        if not same:
            array = jax.device_put(np.asarray(value, v.aval.dtype), replicated(place, v.aval).sharding)
            known = self._numbers[key] = (value, array)
        return known[1]

    def _send(self, sends: Sequence, env: dict) -> None:
        for send in sends:
            env[send.arrived] = jax.device_put(env[send.value], self.pipeline.layouts[send.arrived].sharding)

    def _micro_batches(self, body: Body, env: dict) -> None:
        schedule = body.schedule
        works = schedule.works
        outside = {own: v for own, v in body.outer.items()}
        constant = {own: env[v] for own, v in outside.items() if v in env}
        carried = {c.before for c in body.carries}
        self._send([s for s in body.first if s.value not in carried], constant)
        each = [s for s in body.first if s.value in carried]
        fixed = []  # per task its arguments, with holes for what differs between micro-batches
        for task in body.tasks:
            row, holes = [], []
            for i, v in enumerate(task.task.ins):
                if v is body.turn:
                    holes.append((i, None))
                    row.append(None)
                elif v in constant:
                    row.append(self._given(v, constant, task.task.placement))
                else:
                    holes.append((i, v))
                    row.append(None)
            fixed.append((row, holes))
        after = {c.after: c.before for c in body.carries if isinstance(c.after, Var)}
        turns: list[dict] = [{} for _ in range(body.count + 1)]
        for c in body.carries:
            turns[0][c.before] = self._starts[c.before]() if c.before in self._starts else env[c.start]
        self._send(each, turns[0])
        signals: dict[tuple[int, int], object] = {}
        begun = [0] * schedule.stages
        entry = {w.stage: i for i, w in reversed(list(enumerate(works)))}
        last = {s: max(i for i, w in enumerate(works) if w.stage == s) for s in entry}
        for slot in schedule.slots:
            stage = works[slot.work].stage
            if entry[stage] == slot.work and works[slot.work].kind == FORWARD:
                limit = schedule.in_flight[stage]
                gone = begun[stage] - limit
                begun[stage] += 1
                waits = signals.pop((stage, gone), None)
                if waits is not None:
                    jax.block_until_ready(waits)
            task, (row, holes) = body.tasks[slot.work], fixed[slot.work]
            own = turns[slot.micro]
            place = task.task.placement
            arguments = row.copy()
            for i, v in holes:
                arguments[i] = self._turns[slot.micro][place] if v is None else own[v]
            start = time.perf_counter() if self.trace is not None else 0.0
            results = task.executable(*arguments)
            del arguments
            if self.trace is not None:
                jax.block_until_ready(results)
                self.trace.append((slot.work, slot.micro, time.perf_counter() - start))
            following = turns[slot.micro + 1]
            for v, array in zip(task.task.outs, results, strict=False):
                own[v] = array
                if v in after:
                    following[after[v]] = array
            if last[stage] == slot.work:
                signals[stage, slot.micro] = results[-1]
                if works[entry[stage]].kind != FORWARD:
                    signals.pop((stage, slot.micro - 1), None)
            del results
            self._send(body.sends[slot.work], own)
            for v in body.dropped[slot.work]:
                own.pop(v, None)
        # What follows takes over the memory of the state, so it starts when no stage can fail any more.
        jax.block_until_ready(list(signals.values()))
        final = turns[body.count]
        for c in body.carries:
            if isinstance(c.after, Var) and c.before in final:
                env[c.last] = final[c.before]
            else:
                env[c.last] = turns[0].get(c.before, constant.get(c.before))


def _compile_equal(group: list) -> None:
    (first, lowered), *others = group
    if first.task.placement.type != "cpu" or all(t.task.placement == first.task.placement for t, _ in others):
        for task, own in group:
            task.executable = own.compile()
        return
    first.executable = compiled_afresh(lowered)
    source = list(first.task.placement.mesh.devices.flat)
    for task, own in others:
        task.executable = relocated(first.executable, source, list(task.task.placement.mesh.devices.flat))
        if task.executable is None:
            task.executable = own.compile()


def _start(pipeline: Pipeline, carry, layout: Layout):
    """Return a function that makes what the first turn reads of a carry: zeros, or a value without placement."""
    eqns, wanted = [], {carry.start}
    for eqn in reversed(pipeline.free):
        if any(v in wanted for v in eqn.outvars):
            eqns.append(eqn)
            wanted.update(v for v in eqn.invars if isinstance(v, Var))

    def made():
        if carry.start is None:
            return jnp.zeros(layout.physical_shape, layout.dtype)
        env = dict(pipeline.program.consts)
        evaluate(eqns[::-1], env)
        value = carry.start.val if isinstance(carry.start, Literal) else env[carry.start]
        return jnp.broadcast_to(jnp.asarray(value, layout.dtype), layout.physical_shape)

    return jax.jit(made, out_shardings=layout.sharding)
