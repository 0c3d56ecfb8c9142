"""`Graph.explain` of a pipeline: the transfers between stages, and the traffic of each task within its stage.

Train_0 on 2 stages: 2,048 B per micro-batch between stages, 4 micro-batches

from → to  tensor             layout  bytes   times  line
0 → 1      float32[8, 64]     S0      1,024   4      train.py:31
1 → 0      float32[8, 64]     S0      1,024   4      train.py:31
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sbpjax._core.inspect.display import DisplayedReport, Table
from sbpjax._core.inspect.moves import Moves
from sbpjax._core.planner.prices.links import of_placement
from sbpjax.graph.pipeline.plan import named_tasks
from sbpjax.graph.program.module_names import Names
from sbpjax.sbp import algebra

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


class PipelineCommunication(DisplayedReport):
    """The traffic of a step of a pipelined graph.

    Attributes:
        transfers: between stages.
        tasks: per task its stage, name, bytes per device and run, and boxings within the stage.
    """

    def __init__(self, graph: Any, program: Any) -> None:
        pipeline = program.pipeline
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
        names = Names(graph)
        self.tasks: list[tuple[int, str, int, int, list]] = []
        for task, name, times in named_tasks(pipeline):
            plan = task.program.plan
            place = task.task.placement
            found = Moves(plan, names, of_placement(place), axis_names=place.axis_names).found()
            moves = [m for m in found if m.bytes]
            self.tasks.append((self._stages.index(task.task.placement), name, plan.bytes, times, moves))

    @property
    def bytes_per_micro_batch(self) -> int:
        """Bytes between stages for one micro-batch."""
        return sum(t.bytes for t in self.transfers if t.times == self._count)

    def _rows(self) -> list[tuple[str, ...]]:
        rows = []
        for stage, name, size, times, moves in self.tasks:
            if size:
                top = max(moves, key=lambda m: m.bytes, default=None)
                largest = "" if top is None else f"{top.boxing} ({top.collective}) {top.module}".rstrip()
                rows.append((str(stage), name, f"{size:,}", str(times), largest))
        return rows

    def _blocks(self) -> Iterable[Any]:
        batches = f"{self._count} micro-batch{'es' * (self._count != 1)}"
        yield (
            f"{self._title} on {len(self._stages)} stages: {self.bytes_per_micro_batch:,} B per micro-batch "
            f"between stages, {batches}"
        )
        if self.transfers:
            yield Table([t.cells() for t in self.transfers], _HEAD, right=(3, 4))
        rows = self._rows()
        if rows:
            yield "within stages: bytes per device each time that a task runs", Table(rows, _TASK_HEAD, right=(2, 3))
