"""Runs a planned pipeline: issues its tasks in the order of the schedule, and moves values between stages.

Launches return before the work is done, so one thread keeps all stages busy. What bounds the work in flight is the
schedule: before a stage takes a micro-batch in, it waits for the one to be out whose place it takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Literal, Var

from sbpjax.sbp.layout import Layout
from sbpjax.sbp.normalise import evaluate, live
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
        """Make what every step needs again."""
        places = self.pipeline.stages
        self._turns = [
            {p: jax.device_put(np.int32(i), replicated(p, body.turn.aval).sharding) for p in places}
            for i in range(body.count)
        ]
        self._starts = {
            c.before: _start(self.pipeline, c, body.starts[c.before]) for c in body.carries if c.before in body.starts
        }
        works = body.schedule.works
        carried = {c.before for c in body.carries if c.after is not c.before}
        self._sent_once = [s for s in body.first if s.value not in carried]
        self._sent_each = [s for s in body.first if s.value in carried]
        fixed = {*body.outer, *(s.arrived for s in self._sent_once), *(c.before for c in body.carries)} - carried
        self._holes = [
            [(i, None if v is body.turn else v) for i, v in enumerate(t.task.ins) if v not in fixed] for t in body.tasks
        ]
        self._after = {c.after: c.before for c in body.carries if c.before in carried}
        entry = {w.stage: i for i, w in reversed(list(enumerate(works)))}
        # A stage that begins with a forward takes in no more micro-batches than it has credits; others work them off.
        self._gates = {i: s for s, i in entry.items() if works[i].kind == FORWARD}
        self._exits = {max(i for i, w in enumerate(works) if w.stage == s): s for s in entry}

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
        turns, rows = self._begun(body, env)
        done: list[dict[int, object]] = [{} for _ in range(schedule.stages)]  # micro-batch → what says that it is out
        for work, micro, _, _ in schedule.slots:
            stage = self._gates.get(work)
            if stage is not None:
                jax.block_until_ready(done[stage].pop(micro - schedule.in_flight[stage], None))
            task, own = body.tasks[work], turns[micro]
            arguments = rows[work].copy()
            for i, v in self._holes[work]:
                arguments[i] = self._turns[micro][task.task.placement] if v is None else own[v]
            results = task.executable(*arguments)
            del arguments
            following = turns[micro + 1]
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
            self._send(body.sends[work], own)
            for v in body.dropped[work]:
                own.pop(v, None)
        # What follows takes over the memory of the state, so it starts when no stage can fail any more.
        jax.block_until_ready(done)
        for c in body.carries:
            env[c.last] = turns[-1][c.before] if c.before in turns[-1] else turns[0][c.before]

    def _begun(self, body: Body, env: dict) -> tuple[list[dict], list[list]]:
        """Return what each micro-batch reads so far, and per task its arguments with holes for what differs."""
        turns: list[dict] = [{} for _ in range(body.count + 1)]
        for c in body.carries:
            start = self._starts.get(c.before)
            turns[0][c.before] = env[c.start] if start is None else start(env)
        constant = {own: env[v] for own, v in body.outer.items() if v in env}
        constant |= {c.before: turns[0][c.before] for c in body.carries if c.after is c.before}
        self._send(self._sent_once, constant)
        self._send(self._sent_each, turns[0])
        rows = []
        for task in body.tasks:
            place = task.task.placement
            rows.append([self._given(v, constant, place) if v in constant else None for v in task.task.ins])
        return turns, rows


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
    """Return a function of what is known that makes what the first turn reads: zeros, or a value without placement."""
    eqns = live(pipeline.free, [carry.start])
    read = {carry.start, *(v for eqn in eqns for v in eqn.invars if isinstance(v, Var))}
    sources = [v for v in pipeline.program.invars if v in read]

    def made(*values):
        if carry.start is None:
            return jnp.zeros(layout.physical_shape, layout.dtype)
        env = {**pipeline.program.consts, **dict(zip(sources, values, strict=True))}
        evaluate(eqns, env)
        value = carry.start.val if isinstance(carry.start, Literal) else env[carry.start]
        return jnp.broadcast_to(jnp.asarray(value, layout.dtype), layout.physical_shape)

    run = jax.jit(made, out_shardings=layout.sharding)
    return lambda env: run(*[env[v] for v in sources])
