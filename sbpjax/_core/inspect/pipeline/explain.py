"""`Graph.explain` of a pipeline: the traffic within each stage by purpose, and the transfers between stages.

    Train_0 on 2 stages: 2,048 B per micro-batch between stages, 4 micro-batches
    A rank receives most in stage 1: 8.3 kB a step. Stage 0 takes longest: 24 % of its modelled 0.52 µs is moving (…).

    stage       purpose                bytes  time  count  collectives    weights or modules
    0, 0.52 µs  gradients of weights  4.2 kB  20 %      4  all-reduce a0  layers.0.weight

    from → to    bytes  times  largest tensor  layout  line
    0 → 1       4.1 kB      4  float32[8, 64]  S0      train.py:31

Level 2 lists every transfer and every task.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from sbpjax._core.inspect.communication import Purpose, purposes_of
from sbpjax._core.inspect.display import DisplayedReport, Table, bytes_text, microseconds
from sbpjax._core.inspect.moves import Axis, Move, Moves
from sbpjax._core.inspect.step_summary import LINES, PLACES, fitted_table, growth_remarks, kinds_text, wrapped_lines
from sbpjax._core.planner.prices.cost import CostModel
from sbpjax._core.planner.prices.links import of_placement
from sbpjax._core.planner.prices.step_time import computing_us
from sbpjax._core.tracing.capture import State
from sbpjax.graph.fitting import owners_of
from sbpjax.graph.pipeline.plan import named_tasks
from sbpjax.graph.program.module_names import Names
from sbpjax.sbp import algebra

from .values import PipelineValues

_HEAD = ("from → to", "tensor", "layout", "bytes", "times", "line")
_TASK_HEAD = ("stage", "task", "bytes", "times", "largest boxing")


@dataclass(frozen=True)
class Transfer:
    """A value that goes from one stage to another.

    Attributes:
        source: the stage it comes from.
        target: the stage it goes to.
        tensor: its dtype and shape.
        layout: its layout.
        bytes: its size on all devices of the stage together, in one transfer.
        times: how often in one step.
        line: the user's ``file:line``.
    """

    source: int
    target: int
    tensor: str
    layout: str
    bytes: int
    times: int
    line: str

    def cells(self) -> tuple[str, ...]:
        """Return it as a row of text."""
        ends = f"{self.source} → {self.target}"
        return ends, self.tensor, self.layout, f"{self.bytes:,}", str(self.times), self.line


@dataclass(frozen=True)
class StageTraffic:
    """The traffic within one stage.

    Attributes:
        moves: its conversions, with bytes, times and modelled time of a whole step.
        computing_us: the modelled time of its tasks in one step without collectives.
    """

    moves: tuple[Move, ...]
    computing_us: float

    @property
    def bytes(self) -> int:
        """The bytes that one of its devices receives within the stage in one step."""
        return sum(move.bytes for move in self.moves)

    @property
    def time_us(self) -> float:
        """The modelled time of its tasks, computing and moving one after the other."""
        return self.computing_us + sum(move.us for move in self.moves)

    def share(self, us: float) -> str:
        """Return a time as a share of the stage's."""
        return f"{100 * us / self.time_us:.0f} %" if self.time_us else "0 %"

    def by_purpose(self) -> list[Purpose]:
        """Return the purposes of its conversions, the largest first."""
        return purposes_of(self.moves)


class PipelineCommunication(DisplayedReport):
    """The traffic of a step of a pipelined graph.

    Attributes:
        transfers: between stages.
        tasks: per task its stage, name, bytes per device and run, and boxings within the stage.
        stages: per stage its conversions and modelled time.
        prices: the prices by which times are modelled.
        level: 1 for purposes by stage, 2 for every task.
    """

    def __init__(self, graph: Any, program: Any, level: int = 1) -> None:
        pipeline = program.pipeline
        self.level = level
        self._title = graph.name
        self._stages = pipeline.stages
        self._count = 1 if pipeline.body is None else pipeline.body.count
        self.transfers: list[Transfer] = []
        for send, layout, times in pipeline.sends:
            aval = send.value.aval
            parts = len(set(layout.parts()))
            copies = layout.placement.size // parts
            self.transfers.append(
                Transfer(
                    self._stages.index(layout.placement),
                    self._stages.index(send.target),
                    f"{aval.dtype}{list(aval.shape)}",
                    algebra.nd_name(layout.codes),
                    math.prod(aval.shape) * aval.dtype.itemsize * copies,
                    times,
                    send.line,
                )
            )
        names, values = Names(graph), PipelineValues(program, State(owners_of(graph)))
        axes = _axes(pipeline, values)
        self.prices: CostModel = of_placement(self._stages[0])
        self._root = (
            f"{names.roots[0]}." if len(names.roots) == 1 and f"{names.roots[0]}.0" not in names.modules else ""
        )
        self.tasks: list[tuple[int, str, int, int, list]] = []
        moves: list[list[Move]] = [[] for _ in self._stages]
        computing = [0.0 for _ in self._stages]
        for task, name, times in named_tasks(pipeline):
            plan = task.program.plan
            place = task.task.placement
            stage, prices = self._stages.index(place), of_placement(place)
            found = Moves(plan, names, prices, values.names, axes[stage], place.axis_names).find_moves()
            found = [m for m in found if m.bytes]
            self.tasks.append((stage, name, plan.bytes, times, found))
            moves[stage] += [replace(m, bytes=m.bytes * times, times=m.times * times, us=m.us * times) for m in found]
            computing[stage] += computing_us(plan, prices) * times
        self.stages = [StageTraffic(tuple(own), us) for own, us in zip(moves, computing, strict=True)]

    @property
    def bytes_per_micro_batch(self) -> int:
        """Bytes between stages for one micro-batch."""
        return sum(t.bytes for t in self.transfers if t.times == self._count)

    def _blocks(self) -> Iterable[Any]:
        return self._details() if self.level > 1 else self._summary()

    # -- level 1 -------------------------------------------------------------------------------------------------------

    def _summary(self) -> Iterable[Any]:
        head = [*wrapped_lines(self._head()), *wrapped_lines(self._longest())]
        about = [line for remark in self.remarks() for line in wrapped_lines(f"• {remark}")]
        ends = self._transfer_rows()
        left = LINES - len(head) - len(about) - len(ends) - 5  # three empty lines, two of column names
        rows = self._stage_rows(max(1, left // len(self.stages)))
        yield "\n".join(head)
        if rows:
            columns = ("stage", "purpose", "bytes", "time", "count", "collectives", PLACES)
            yield fitted_table(rows, columns, right=(2, 3, 4))
        if ends:
            columns = ("from → to", "bytes", "times", "largest tensor", "layout", "line")
            yield fitted_table(ends, columns, right=(1, 2))
        if about:
            yield "\n".join(about)

    def remarks(self) -> list[str]:
        """Return the largest purpose within stages, with the quantities that it grows with."""
        purposes = purposes_of(move for stage in self.stages for move in stage.moves)
        return growth_remarks(purposes, "The largest share within stages")

    def _head(self) -> str:
        batches = f"{self._count} micro-batch{'es' * (self._count != 1)}"
        return (
            f"{self._title} on {len(self._stages)} stages: {self.bytes_per_micro_batch:,} B per micro-batch "
            f"between stages, {batches}"
        )

    def _longest(self) -> str:
        most = max(range(len(self.stages)), key=lambda s: self.stages[s].bytes)
        longest = max(range(len(self.stages)), key=lambda s: self.stages[s].time_us)
        stage = self.stages[longest]
        moving = stage.share(stage.time_us - stage.computing_us)
        return (
            f"A rank receives most in stage {most}: {bytes_text(self.stages[most].bytes)} a step. "
            f"Stage {longest} takes longest: {moving} of its modelled {microseconds(stage.time_us)} is moving "
            f"({self.prices.title}, one after the other)."
        )

    def _stage_rows(self, most: int) -> list[tuple[Any, ...]]:
        """Return so many rows for each stage: its largest purposes, then all others in one row."""
        rows = []
        for number, stage in enumerate(self.stages):
            found, label = stage.by_purpose(), f"{number}, {microseconds(stage.time_us)}"
            large, small = (found, []) if len(found) <= most else (found[: most - 1], found[most - 1 :])
            for k, p in enumerate(large):
                cells = p.name, bytes_text(p.bytes), stage.share(p.us), str(p.times), kinds_text(p)
                rows.append((label if not k else "", *cells, list(map(self._shorten, p.places))))
            if small:
                size, us, times = (sum(getattr(p, field) for p in small) for field in ("bytes", "us", "times"))
                cells = f"{len(small)} others", bytes_text(size), stage.share(us), str(times), ""
                rows.append((label if not large else "", *cells, [self._shorten(x) for p in small for x in p.places]))
        return rows

    def _shorten(self, name: str) -> str:
        return name.removeprefix(self._root)

    def _transfer_rows(self) -> list[tuple[Any, ...]]:
        """Return a row for each pair of stages, with the largest tensor that goes between them."""
        pairs: dict[tuple[int, int], list[Transfer]] = {}
        for t in self.transfers:
            pairs.setdefault((t.source, t.target), []).append(t)
        rows = []
        for (source, target), found in pairs.items():
            largest = max(found, key=lambda t: t.bytes * t.times)
            size, times = sum(t.bytes * t.times for t in found), sum(t.times for t in found)
            cells = bytes_text(size), str(times), largest.tensor, largest.layout
            rows.append((f"{source} → {target}", *cells, [os.path.basename(largest.line)]))
        return rows

    # -- level 2 -------------------------------------------------------------------------------------------------------

    def _details(self) -> Iterable[Any]:
        yield self._head()
        if self.transfers:
            yield Table([t.cells() for t in self.transfers], _HEAD, right=(3, 4))
        rows = self._rows()
        if rows:
            yield "within stages: bytes per device each time that a task runs", Table(rows, _TASK_HEAD, right=(2, 3))

    def _rows(self) -> list[tuple[str, ...]]:
        rows = []
        for stage, name, size, times, moves in self.tasks:
            if size:
                top = max(moves, key=lambda m: m.bytes, default=None)
                largest = "" if top is None else f"{top.boxing} ({top.collective}) {top.module}".rstrip()
                rows.append((str(stage), name, f"{size:,}", str(times), largest))
        return rows


def _axes(pipeline: Any, values: PipelineValues) -> list[tuple[Axis, ...]]:
    """Return per stage the parts of the step that each mesh axis divides, by the layouts of what comes to it."""
    arrived = {send.arrived for send, _, _ in pipeline.sends if send.value not in values.inputs}
    found = []
    for place in pipeline.stages:
        divides: list[set[str]] = [set() for _ in place.hierarchy]
        for v, layout in pipeline.layouts.items():
            kind, name = values.inputs.get(v, ("", "an argument" if v in arrived else ""))
            if layout.placement != place or kind or not name:
                continue
            for axis, code in enumerate(layout.codes):
                if code >= 0:
                    rows = "batch" if code == 0 else "sequence"
                    divides[axis].add(rows if name == "an argument" else "weights")
        sizes = zip(place.hierarchy, divides, strict=True)
        order = ("batch", "sequence", "weights")
        found.append(tuple(Axis(int(n), tuple(x for x in order if x in own)) for n, own in sizes))
    return found
