"""Memory and traffic of a pipelined step, stage by stage; nothing runs.

    memory per device of Train_0.build on 2 stages, compiled
    stage  parameters  optimizer  inputs  activations  gradients  temporaries    total
    0          4.2 kB     8.4 kB   256 B       1.0 kB     4.2 kB       2.1 kB  20.2 kB
    1          4.2 kB     8.4 kB   128 B          0 B     4.2 kB       2.3 kB  19.2 kB

Only the fullest stage has to fit, so the figures of the whole are that stage's.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sbpjax._core.inspect.display import Table, bytes_text
from sbpjax._core.inspect.memory import Memory
from sbpjax._core.inspect.traffic import Traffic, planned_bytes, traffic
from sbpjax._core.jax_private import Literal
from sbpjax._core.planner.memory.limit import capacity_of
from sbpjax._core.planner.memory.liveness import Spans
from sbpjax.graph.pipeline.p2p_transfer import owns_device
from sbpjax.graph.pipeline.plan import named_tasks
from sbpjax.graph.pipeline.schedule import FORWARD
from sbpjax.sbp.layout import Layout

_COLUMNS = ("parameters", "optimizer", "inputs", "activations", "gradients", "temporaries", "total")


@dataclass(frozen=True, repr=False)
class PipelineMemory(Memory):
    """Bytes on one device of the fullest stage.

    Attributes:
        stages: the same of every stage, in the order in which a micro-batch comes to them.
    """

    stages: tuple[Memory, ...] = ()

    def _blocks(self) -> Iterable[Any]:
        rows = [
            (str(i), *(bytes_text(getattr(stage, name)) for name in _COLUMNS)) for i, stage in enumerate(self.stages)
        ]
        yield self._head(), Table(rows, ("stage", *_COLUMNS), right=range(1, 1 + len(_COLUMNS)))


@dataclass(frozen=True, repr=False)
class PipelineTraffic(Traffic):
    """Bytes on the interconnect per device and step of the stage that moves most within itself.

    Attributes:
        stages: the same of every stage.
        between: per stage the bytes that one step sends to other stages, of all its devices together.
    """

    stages: tuple[Traffic, ...] = ()
    between: tuple[int, ...] = ()

    def _blocks(self) -> Iterable[Any]:
        for i, (stage, sent) in enumerate(zip(self.stages, self.between, strict=True)):
            yield f"stage {i}, {bytes_text(sent)} to other stages", stage


def memory(program: Any, state: Any, compiled: bool) -> PipelineMemory:
    """Return the memory that a pipelined program needs on one device per stage.

    ``compiled``: the compiler's figures for values that live during a task; else an estimate from the plans, as it
    is done for stages in other processes.
    """
    if compiled:
        program.compile()
    pipeline = program.pipeline
    kinds = state.kinds()
    title = f"{program.operation} on {len(pipeline.stages)} stages"
    found = []
    for place in pipeline.stages:
        count = dict.fromkeys(("parameters", "buffers", "optimizer"), 0)
        for t, kind in zip(state.tensors, kinds, strict=True):
            if t.layout is not None and t.layout.placement == place:
                count[kind] += local_bytes(t.layout)
        given = program.in_layouts[1 + len(state.tensors) :]
        requested = compiled and owns_device(place)
        found.append(
            Memory(
                **count,
                inputs=sum(local_bytes(x) for x in given if x is not None and x.placement == place),
                results=_results(program, place),
                activations=peak_saved_bytes(pipeline, place),
                gradients=_sums(pipeline, place),
                temporaries=max(_temporaries(t, requested) for t in pipeline.compiled if t.task.placement == place),
                compiled=requested,
                capacity=capacity_of(place),
                title=title,
            )
        )
    fullest = max(found, key=lambda m: m.total)
    return PipelineMemory(**{**vars(fullest), "compiled": compiled}, stages=tuple(found))


def traffic_of(program: Any) -> PipelineTraffic:
    """Return the traffic of a pipelined program per stage, planned and compiled; it is compiled if it was not.

    Of stages in other processes there are only the planned bytes.
    """
    program.compile()
    pipeline = program.pipeline
    stages, between = [], []
    for place in pipeline.stages:
        planned: dict[str, int] = {}
        compiled: dict[str, int] = {}
        counts: dict[str, int] = {}
        for task, _, times in named_tasks(pipeline):
            if task.task.placement != place:
                continue
            plan = task.program.plan
            one = Traffic(planned_bytes(plan, place), {}, {})
            if owns_device(place):
                one = traffic(plan, task.executable.as_text(), place)
            for whole, part in ((planned, one.planned), (compiled, one.compiled), (counts, one.counts)):
                for kind, number in part.items():
                    whole[kind] = whole.get(kind, 0) + times * number
        stages.append(Traffic(planned, compiled, counts))
        between.append(sum(local_bytes(x) * place.size * n for _, x, n in pipeline.sends if x.placement == place))
    most = max(stages, key=lambda t: sum(t.planned.values()))
    return PipelineTraffic(**vars(most), stages=tuple(stages), between=tuple(between))


def local_bytes(layout: Layout) -> int:
    """Return the bytes of a tensor on one device."""
    return math.prod(layout.local_shape) * layout.dtype.itemsize


def peak_saved_bytes(pipeline: Any, place: Any) -> int:
    """Return the bytes per device of the values that wait on a stage, at the fullest moment, for a backward."""
    body = pipeline.body
    if body is None:
        return 0
    after = {c.after for c in body.carries if not isinstance(c.after, Literal)}
    sent = {s.value for sends in body.sends for s in sends}
    stage, works = pipeline.stages.index(place), body.schedule.works
    live_bytes = 0
    for task, work in zip(body.tasks, works, strict=True):
        if work.stage == stage and work.kind == FORWARD:
            live_bytes += sum(local_bytes(pipeline.layouts[v]) for v in set(task.task.outs) - after - sent)
    chunks = max(1, len({w.chunk for w in works if w.stage == stage and w.kind == FORWARD}))
    return live_bytes // chunks * body.schedule.in_flight[stage]


def _sums(pipeline: Any, place: Any) -> int:
    """Return the bytes of the values that go from micro-batch to micro-batch: sums of gradients, statistics."""
    carries = [] if pipeline.body is None else pipeline.body.carries
    layouts = [pipeline.layouts.get(c.before) for c in carries if c.after is not c.before]
    return sum(local_bytes(x) for x in layouts if x is not None and x.placement == place)


def _results(program: Any, place: Any) -> int:
    layouts = program.out_layouts[len(program.written) :]
    return sum(local_bytes(x) for x in layouts if x is not None and x.placement == place)


def _temporaries(task: Any, compiled: bool) -> int:
    if compiled:
        return int(task.executable.memory_analysis().temp_size_in_bytes)
    return Spans(task.program.plan.program, task.program.plan).at_peak().total
