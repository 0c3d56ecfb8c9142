"""`Graph.pipeline_report`: busy and idle time, bubble and activations of each stage.

Tasks are timed one at a time on zeros of the right shapes, so that the figures do not depend on other stages; the
schedule is then laid out with these times. In each round every task runs once, and a task has the median of the rounds,
so that other work on the machine, which lasts for a few rounds, slows down no task alone. Nothing of the model changes.

    Train_0: 4 stages, 8 micro-batches, 1f1b; 33.1 ms a step, bubble 28.0 % (27.3 % if all stages were equal)
    stage  tasks            busy ms  idle ms  activations  micro-batches
    0      F 1.0, B 2.1 ms     24.8      8.3       4.2 MB              4
"""

from __future__ import annotations

import html
import json
import os
import statistics
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from sbpjax._core.inspect.display import DisplayedReport, Table, as_html, bytes_text, svg
from sbpjax._core.runtime import processes
from sbpjax.errors import GraphError
from sbpjax.graph.pipeline.p2p_transfer import owns_device
from sbpjax.graph.pipeline.schedule import BACKWARD, BOTH, FORWARD, Schedule, Work, schedule
from sbpjax.sbp.layout import Layout

from .sizes import peak_saved_bytes

_COLOURS = {FORWARD: "#4c78a8", BACKWARD: "#f58518", BOTH: "#b279a2", "W": "#72b7b2"}


@dataclass(repr=False)
class PipelineReport(DisplayedReport):
    """A pipelined step on the clock.

    Attributes:
        name: the graph.
        schedule: the order, with measured times in seconds.
        activations: per stage, bytes per device of the values of one micro-batch that wait for its backward.
        peak: per stage, bytes per device of the values that wait at the fullest moment.
        notes: what the times include.
    """

    name: str
    schedule: Schedule
    activations: list[int]
    peak: list[int]
    notes: tuple[str, ...] = ()

    @property
    def ideal(self) -> float:
        """The bubble of 1F1B and GPipe if all stages took equally long."""
        stages = self.schedule.stages
        return (stages - 1) / (self.schedule.micro_batches + stages - 1)

    @property
    def idle(self) -> list[float]:
        """Per stage, how long it waits."""
        return [self.schedule.makespan - busy for busy in self.schedule.busy]

    def _figures(self) -> tuple[str, Table]:
        plan = self.schedule
        head = (
            f"{self.name}: {plan.stages} stages, {plan.micro_batches} micro-batches, {plan.name}; "
            f"{plan.makespan * 1e3:.1f} ms a step, bubble {plan.bubble * 100:.1f} % "
            f"({self.ideal * 100:.1f} % if all stages were equal)"
        )
        rows = []
        for s in range(plan.stages):
            tasks = ", ".join(f"{w.kind}{w.chunk} {w.cost * 1e3:.1f}" for w in plan.works if w.stage == s)
            rows.append(
                (str(s), f"{tasks} ms", f"{plan.busy[s] * 1e3:.1f}", f"{self.idle[s] * 1e3:.1f}",
                 bytes_text(self.peak[s]), str(plan.in_flight[s]))
            )  # fmt: skip
        columns = ("stage", "tasks", "busy ms", "idle ms", "activations", "micro-batches")
        return head, Table(rows, columns, right=range(2, 6))

    def _blocks(self) -> Iterable[Any]:
        yield self._figures()
        yield self.timeline()
        if self.notes:
            yield "\n".join(f"• {note}" for note in self.notes)

    def timeline(self, width: int = 96) -> str:
        """Return the step as text: one line per stage, one letter per moment (F forward, B backward, W, · idle)."""
        scale = width / self.schedule.makespan
        lines = []
        for s in range(self.schedule.stages):
            line = ["·"] * width
            for slot in self.schedule.slots:
                work = self.schedule.works[slot.work]
                if work.stage != s:
                    continue
                first, last = int(slot.start * scale), max(int(slot.start * scale) + 1, int(slot.finish * scale))
                letters = "B" if work.kind == BOTH else work.kind
                for i in range(first, min(last, width)):
                    line[i] = letters if i > first else str(slot.micro % 10)
            lines.append(f"{s} {''.join(line)}")
        return "\n".join(lines)

    def svg(self, width: int = 900, height: int = 28) -> str:
        """Return the step as a picture: time to the right, stages downwards."""
        scale = width / self.schedule.makespan
        boxes = []
        for slot in self.schedule.slots:
            work = self.schedule.works[slot.work]
            x, w, y = slot.start * scale, (slot.finish - slot.start) * scale, work.stage * height
            title = f"{work.kind}{work.chunk} of micro-batch {slot.micro}: {(slot.finish - slot.start) * 1e3:.2f} ms"
            boxes.append(
                f'<rect x="{x:.1f}" y="{y}" width="{max(w - 0.5, 0.5):.1f}" height="{height - 4}" '
                f'fill="{_COLOURS[work.kind]}"><title>{html.escape(title)}</title></rect>'
            )
            if w > 14:
                boxes.append(
                    f'<text x="{x + w / 2:.1f}" y="{y + height / 2 + 2}" font-size="11" text-anchor="middle" '
                    f'fill="white">{slot.micro}</text>'
                )
        return svg(width, height * self.schedule.stages, boxes)

    def _repr_html_(self) -> str:
        return "".join([*map(as_html, self._figures()), self.svg(), *map(as_html, self.notes)])

    def save(self, path: str | os.PathLike) -> Path:
        """Write the step as a file: ``.json`` for Chrome's and Perfetto's trace viewers, ``.svg`` or ``.html``.

        Args:
            path: the file.

        Returns:
            The file.
        """
        path = Path(path)
        if path.suffix == ".json":
            events = [
                {"name": f"{w.kind}{w.chunk} {slot.micro}", "ph": "X", "pid": 0, "tid": w.stage, "ts": slot.start * 1e6,
                 "dur": (slot.finish - slot.start) * 1e6}
                for slot in self.schedule.slots for w in [self.schedule.works[slot.work]]
            ]  # fmt: skip
            path.write_text(json.dumps({"traceEvents": events}))
        else:
            path.write_text(self.svg() if path.suffix == ".svg" else self._repr_html_())
        return path


def report(graph: Any, program: Any, rounds: int) -> PipelineReport:
    """Time the tasks of a pipelined program and simulate its schedule."""
    pipeline = getattr(program, "pipeline", None)
    if pipeline is None or pipeline.body is None:
        raise GraphError(
            f"{graph.name}.pipeline_report()",
            "a graph on one placement" if pipeline is None else "a step without micro-batches",
            "a report shows how stages on several placements share the micro-batches of a step",
            "config.set_gradient_accumulation_steps(M), and parameters on several placements",
        )
    program.compile(to_run=True)
    body = pipeline.body
    own = _task_seconds(body.tasks, rounds)
    every = processes.current().exchange(f"pipeline_report of {program.operation}", own).values()
    works = [w._replace(cost=max(costs)) for w, *costs in zip(body.schedule.works, *every, strict=True)]
    timed = retime_schedule(body.schedule, works)
    peak = [peak_saved_bytes(pipeline, place) for place in pipeline.stages]
    each = [bytes_ // max(1, timed.in_flight[s]) for s, bytes_ in enumerate(peak)]
    return PipelineReport(graph.name, timed, each, peak, tuple(_notes(body, rounds)))


def retime_schedule(plan: Schedule, works: list[Work]) -> Schedule:
    """Return a schedule in the same order with other times."""
    found = schedule(plan.rows(), works, plan.micro_batches)
    found.name, found.in_flight = plan.name, plan.in_flight
    return found


def _notes(body: Any, rounds: int) -> Iterable[str]:
    """Yield what the times of tasks include."""
    yield f"Each time is the median of {rounds} round{'s' * (rounds != 1)}; in a round, every task runs once, alone."
    cuts = [
        f"{w.kind}{w.chunk}"
        for task, w in zip(body.tasks, body.schedule.works, strict=True)
        if body.iteration in task.task.ins and any(eqn.primitive.name == "dynamic_slice" for eqn in task.task.eqns)
    ]
    if cuts:
        yield f"The time of {' and of '.join(cuts)} includes cutting the micro-batch out of an argument of build."
    if any(task.task.placement.type == "cpu" for task in body.tasks):
        yield "Virtual devices share the cores of the machine: other work on it makes these times longer."


def _task_seconds(tasks: Sequence[Any], rounds: int) -> list[float]:
    """Return the median time of every task of this process, and 0 for tasks of other processes."""
    times: list[list[float]] = [[] for _ in tasks]
    for _ in range(rounds + 1):
        for task, own in zip(tasks, times, strict=True):
            if owns_device(task.task.placement):
                own.append(_seconds(task))
    return [statistics.median(own[1:]) if own else 0.0 for own in times]  # the first round warms up


def _seconds(task: Any) -> float:
    arrays = [_zeros(x) for x in task.in_layouts]
    jax.block_until_ready(arrays)
    start = time.perf_counter()
    jax.block_until_ready(task.executable(*arrays))
    return time.perf_counter() - start


def _zeros(layout: Layout) -> jax.Array:
    """Return zeros on the devices of a layout, of which other processes may own some."""
    sharding = layout.sharding
    block = np.zeros(sharding.shard_shape(layout.physical_shape), layout.dtype)
    blocks = [jax.device_put(block, device) for device in sharding.addressable_devices]
    return jax.make_array_from_single_device_arrays(layout.physical_shape, sharding, blocks, dtype=layout.dtype)
