"""Pipeline schedules: the order of tasks on every stage, as plain data.

    >>> print(schedule("1f1b", linear(stages=2), micro_batches=3))
    1f1b of 3 micro-batches on 2 stages, 12 units of time, bubble 25.0 %
    stage 0  F0 F1 B0 F2 B1 B2
    stage 1  FB0 FB1 FB2

A schedule is found by *list scheduling*: whenever a stage is idle, it starts the ready task that its policy likes
best, if the stage has credits left. A credit is one micro-batch whose activations the stage holds. With S - s credits
on stage s and the deepest task first this is 1F1B; without a limit and with forwards first it is GPipe; with several
chunks of the model per stage the same rule interleaves them; with the gradients of weights as tasks of their own,
which wait until nothing else is ready, it is the zero-bubble schedule.

Costs are in any unit. The same function serves the driver (unit costs) and questions on paper
(`sbpjax.graph.pipeline.simulate`).
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from sbpjax.errors import GraphConfigError

NAMES = ("1f1b", "gpipe", "interleaved", "zero_bubble")
FORWARD, BACKWARD, BOTH, WEIGHT = "F", "B", "FB", "W"


class Work(NamedTuple):
    """One task of a micro-batch.

    Attributes:
        stage: on which stage it runs.
        chunk: which part of the model it belongs to, counted along the forward.
        kind: ``"F"``, ``"B"``, ``"FB"`` (a last stage's forward and backward in one) or ``"W"`` (gradients of weights).
        cost: how long it takes.
        after: the numbers of the tasks of the same micro-batch that come before it.
        link: time for its inputs to arrive from other stages.
    """

    stage: int
    chunk: int
    kind: str
    cost: float
    after: tuple[int, ...]
    link: float = 0.0


class Slot(NamedTuple):
    """One task of one micro-batch in a schedule.

    Attributes:
        work: the number of the task.
        micro: the micro-batch.
        start: when it starts.
        finish: when it is done.
    """

    work: int
    micro: int
    start: float
    finish: float


@dataclass
class Schedule:
    """An order of tasks, with the times that their costs give.

    Attributes:
        name: which rule made it.
        works: the tasks of one micro-batch.
        micro_batches: how many.
        slots: all tasks of all micro-batches, by start.
        in_flight: per stage, of how many micro-batches (times chunks) it holds activations at most.
        limits: per stage the credits it had.
    """

    name: str
    works: tuple[Work, ...]
    micro_batches: int
    slots: list[Slot]
    in_flight: list[int]
    limits: list[int] = field(default_factory=list)

    @property
    def stages(self) -> int:
        """How many stages."""
        return 1 + max(w.stage for w in self.works)

    @property
    def has_chunks(self) -> bool:
        """Whether a micro-batch visits a stage several times."""
        return len({w.chunk for w in self.works}) > self.stages

    @property
    def makespan(self) -> float:
        """When the last task is done."""
        return max(slot.finish for slot in self.slots)

    @property
    def busy(self) -> list[float]:
        """Per stage, how long it works."""
        times = [0.0] * self.stages
        for slot in self.slots:
            times[self.works[slot.work].stage] += slot.finish - slot.start
        return times

    @property
    def bubble(self) -> float:
        """The idle share of all stages' time."""
        return 1.0 - sum(self.busy) / (self.stages * self.makespan)

    def rows(self) -> list[list[tuple[str, int, int]]]:
        """Return per stage its list of (kind, chunk, micro-batch)."""
        found: list[list[tuple[str, int, int]]] = [[] for _ in range(self.stages)]
        for slot in self.slots:
            work = self.works[slot.work]
            found[work.stage].append((work.kind, work.chunk, slot.micro))
        return found

    def events(self, runs: Sequence[bool], sends: Sequence[bool]) -> list[tuple[int, int, bool]]:
        """Return the actions of one of several processes, in order: (task, micro-batch, whether to run it or to send).

        A send waits for the other side, so both sides have it where its task is done in the schedule: a total order of
        tasks and sends in which everything comes after its inputs, and of which every process does a part. So the first
        of the remaining actions can always be done, and no stage waits for ever.

        Args:
            runs: per task whether the process runs it.
            sends: per task whether it sends or receives the task's results.
        """
        order = [(start, 1, i, work, micro) for i, (work, micro, start, _) in enumerate(self.slots) if runs[work]]
        order += [(finish, 0, i, work, micro) for i, (work, micro, _, finish) in enumerate(self.slots) if sends[work]]
        return [(work, micro, kind == 1) for _, kind, _, work, micro in sorted(order)]

    def __str__(self) -> str:
        lines = [
            f"{self.name} of {self.micro_batches} micro-batches on {self.stages} stages, "
            f"{self.makespan:g} units of time, bubble {self.bubble:.1%}".replace("%", " %")
        ]
        for number, row in enumerate(self.rows()):
            names = [f"{kind}{f'{chunk}.' if self.has_chunks else ''}{micro}" for kind, chunk, micro in row]
            lines.append(f"stage {number}  {' '.join(names)}")
        return "\n".join(lines)


def linear(
    stages: int,
    chunks: int = 1,
    *,
    forward: float | Sequence[float] = 1.0,
    backward: float | Sequence[float] = 2.0,
    link: float = 0.0,
    split_weights: bool = False,
) -> tuple[Work, ...]:
    """Return the tasks of a model that is a row of parts, `chunks` of them on every stage.

    Args:
        stages: how many stages.
        chunks: how many parts of the model a stage has; part ``c`` is on stage ``c mod stages``.
        forward: cost of a forward, one for all parts or one each.
        backward: cost of a backward, likewise.
        link: time from one stage to the next.
        split_weights: make the gradients of weights, half of a backward, tasks of their own.
    """
    parts = stages * chunks
    costs = [(cost,) * parts if isinstance(cost, (int, float)) else tuple(cost) for cost in (forward, backward)]
    works: list[Work] = []
    for c in range(parts - 1):
        works.append(Work(c % stages, c, FORWARD, costs[0][c], (c - 1,) if c else (), link if c else 0.0))
    before = (parts - 2,) if parts > 1 else ()
    for c in reversed(range(parts)):
        first = c == parts - 1
        whole = costs[1][c]
        kind, cost = (BOTH, costs[0][c] + whole) if first else (BACKWARD, whole)
        works.append(
            Work(c % stages, c, kind, cost - whole / 2 if split_weights else cost, before, link if parts > 1 else 0.0)
        )
        before = (len(works) - 1,)
        if split_weights:
            works.append(Work(c % stages, c, WEIGHT, whole / 2, before))
    return tuple(works)


def schedule(
    name: str | Sequence[Sequence[tuple[str, int, int]]],
    works: Sequence[Work],
    micro_batches: int,
    limits: Sequence[int] | None = None,
) -> Schedule:
    """Return the schedule of a rule, or check one that is given.

    Args:
        name: one of `NAMES`, or per stage its list of (kind, chunk, micro-batch).
        works: the tasks of one micro-batch, each after those that it needs.
        micro_batches: how many.
        limits: per stage, of how many micro-batches it may hold activations; by default the rule's own.

    Raises:
        GraphConfigError: an unknown rule; a given schedule that never ends, or leaves out or repeats a task.
    """
    works = tuple(works)
    stages = 1 + max(w.stage for w in works)
    if not isinstance(name, str):
        return _check_schedule([list(row) for row in name], works, micro_batches)
    if name not in NAMES:
        raise GraphConfigError(
            "a pipeline schedule", repr(name), f"one of {list(NAMES)}, or a list per stage", 'schedule="1f1b"'
        )
    best = None
    for allowed in [list(limits)] if limits is not None else _in_flight_limits(name, works, stages, micro_batches):
        found = _list_schedule(name, works, stages, micro_batches, allowed)
        # By more than rounding, so that of equal schedules the first, with the fewest credits, holds the least.
        if best is None or found.makespan < best.makespan * (1 - 1e-9):
            best = found
    assert best is not None
    if limits is None and len({w.chunk for w in works}) > stages:
        rounds = _rounds(works, stages, micro_batches)
        if rounds is not None and rounds.makespan < best.makespan * (1 - 1e-9):
            best = replace(rounds, name=name)
    return best


def _in_flight_limits(name: str, works: tuple[Work, ...], stages: int, micro_batches: int) -> list[list[int]]:
    chunks = max(1, len({w.chunk for w in works}) // stages)
    if name == "gpipe":
        return [[micro_batches * chunks] * stages]
    if chunks == 1:
        return [[stages - s for s in range(stages)]]
    # More credits fill more of the bubble and hold more; which pay depends on costs, and a schedule costs little.
    return [[stages - s + more for s in range(stages)] for more in range(stages + 1)]


def _rounds(works: tuple[Work, ...], stages: int, micro_batches: int) -> Schedule | None:
    """Interleave in rounds: a stage takes as many micro-batches as there are stages through each of its chunks.

    After a warm-up of 2 (S - s - 1) + (V - 1) S forwards, forwards and backwards take turns. Returns None where the
    tasks are no such row of chunks, or the order would wait for itself.
    """
    rows = []
    for s in range(stages):
        own = sorted({w.chunk for w in works if w.stage == s})
        kinds = {(w.chunk, w.kind) for w in works if w.stage == s}
        if any(kind == WEIGHT for _, kind in kinds):
            return None
        groups = [range(m, min(m + stages, micro_batches)) for m in range(0, micro_batches, stages)]
        forwards = [(FORWARD, c, m) for group in groups for c in own for m in group]
        backwards = [
            (BOTH if (c, BOTH) in kinds else BACKWARD, c, m) for group in groups for c in reversed(own) for m in group
        ]
        warm = min(len(forwards), 2 * (stages - s - 1) + (len(own) - 1) * stages)
        row, rest = forwards[:warm], forwards[warm:]
        for i, backward in enumerate(backwards):
            row += rest[i : i + 1]
            row.append(backward)
        rows.append([entry for entry in row if (entry[1], entry[0]) in kinds])
    try:
        return _check_schedule(rows, works, micro_batches)
    except GraphConfigError:
        return None


def _list_schedule(name: str, works: tuple[Work, ...], stages: int, micro_batches: int, limits: list[int]) -> Schedule:
    """Schedule by time: start the best ready task on every idle stage, then go on to when the next one is done."""
    # With this a stage lets go of a chunk's activations.
    last = {w.chunk: i for i, w in enumerate(works)}
    first = {w.chunk: i for i, w in reversed(list(enumerate(works)))}
    entry = {w.stage: i for i, w in reversed(list(enumerate(works)))}  # a micro-batch enters a stage here
    needed_by: list[list[int]] = [[] for _ in works]
    for i, w in enumerate(works):
        for j in w.after:
            needed_by[j].append(i)
    missing = [[len(w.after) for w in works] for _ in range(micro_batches)]
    ready: list[list] = [[] for _ in range(stages)]
    gated: list[list] = [[] for _ in range(stages)]  # ready, and in need of a credit

    def offer(i: int, micro: int) -> None:
        work = works[i]
        queue = gated if entry[work.stage] == i else ready
        heapq.heappush(queue[work.stage], (_priority(name, work, i, micro), i, micro))

    for micro in range(micro_batches):
        for i, w in enumerate(works):
            if not w.after:
                offer(i, micro)
    inside, held, peak = [0] * stages, [0] * stages, [0] * stages
    free = [True] * stages
    events: list[tuple] = []
    slots: list[Slot] = []
    now = 0.0

    def start(stage: int) -> None:
        options = [ready[stage]] if ready[stage] else []
        if gated[stage] and inside[stage] < limits[stage]:
            options.append(gated[stage])
        if not free[stage] or not options:
            return
        queue = min(options, key=lambda q: q[0])
        _, i, micro = heapq.heappop(queue)
        inside[stage] += queue is gated[stage]
        held[stage] += first[works[i].chunk] == i
        peak[stage] = max(peak[stage], held[stage])
        free[stage] = False
        slots.append(Slot(i, micro, now, now + works[i].cost))
        heapq.heappush(events, (now + works[i].cost, 0, i, micro))

    for stage in range(stages):
        start(stage)
    while events:
        now = events[0][0]
        touched = set()
        # All that ends now, before any stage chooses: else the choice would depend on the order within the heap.
        while events and events[0][0] == now:
            _, kind, i, micro = heapq.heappop(events)
            stage = works[i].stage
            touched.add(stage)
            # The inputs of this task have arrived from another stage.
            if kind == 1:
                offer(i, micro)
                continue
            free[stage] = True
            if last[works[i].chunk] == i:
                held[stage] -= 1
                # Credits are for the chunk by which micro-batches come to the stage; its other chunks follow from that.
                inside[stage] -= works[i].chunk == works[entry[stage]].chunk
            for j in needed_by[i]:
                missing[micro][j] -= 1
                if not missing[micro][j]:
                    if works[j].link and works[j].stage != stage:
                        heapq.heappush(events, (now + works[j].link, 1, j, micro))
                    else:
                        offer(j, micro)
                        touched.add(works[j].stage)
        for stage in sorted(touched):
            start(stage)
    if len(slots) != len(works) * micro_batches:
        raise _stuck(name, len(slots), len(works) * micro_batches)
    slots.sort(key=lambda s: (s.start, -s.work))
    return Schedule(name, works, micro_batches, slots, peak, limits)


def _priority(name: str, work: Work, number: int, micro: int) -> tuple:
    if name == "gpipe":
        return (work.kind != FORWARD, micro, number)
    # The deepest ready task first, gradients of weights last: with credits that is 1F1B, and zero bubble, without
    # writing either down.
    return (work.kind == WEIGHT, -number, micro)


def _check_schedule(rows: list[list], works: tuple[Work, ...], micro_batches: int) -> Schedule:
    """Check a schedule that is given per stage, and time it."""
    number = {(w.kind, w.chunk): i for i, w in enumerate(works)}
    stages = 1 + max(w.stage for w in works)
    wanted = {(w.stage, w.kind, w.chunk, m) for w in works for m in range(micro_batches)}
    listed = [(s, *entry) for s, row in enumerate(rows) for entry in row]
    taken: dict[tuple, list[int]] = {}
    for row in rows:
        for kind, chunk, micro in row:
            taken.setdefault((kind, chunk), []).append(micro)
    wrong = next((key for key, micros in taken.items() if micros != sorted(micros)), None)
    if wrong is not None:
        raise GraphConfigError(
            "a given pipeline schedule",
            f"{wrong[0]} of chunk {wrong[1]} on micro-batches {taken[wrong]}",
            "a task takes its micro-batches in order, since sums and statistics go from one to the next",
            "list them from 0 on",
        )
    if set(listed) != wanted or len(listed) != len(wanted):
        extra, absent = sorted(set(listed) - wanted)[:2], sorted(wanted - set(listed))[:2]
        raise GraphConfigError(
            "a given pipeline schedule",
            f"{len(listed)} entries; not of this pipeline: {extra}; absent: {absent}",
            f"every stage lists each of its tasks once per micro-batch, {len(wanted)} in all",
            'start from the rows() of schedule("1f1b", ...)',
        )
    done: dict[tuple[int, int], float] = {}
    at, now = [0] * stages, [0.0] * stages
    slots: list[Slot] = []
    held, peak = [0] * stages, [0] * stages
    first = {w.chunk: i for i, w in reversed(list(enumerate(works)))}
    last = {w.chunk: i for i, w in enumerate(works)}
    while len(slots) < len(wanted):
        before = len(slots)
        for s in range(stages):
            while at[s] < len(rows[s]):
                kind, chunk, micro = rows[s][at[s]]
                i = number[kind, chunk]
                if any((j, micro) not in done for j in works[i].after):
                    break
                arrivals = [done[j, micro] + (works[i].link if works[j].stage != s else 0) for j in works[i].after]
                begin = max([now[s], *arrivals])
                now[s] = done[i, micro] = begin + works[i].cost
                held[s] += i == first[chunk]
                peak[s] = max(peak[s], held[s])
                held[s] -= i == last[chunk]
                slots.append(Slot(i, micro, begin, now[s]))
                at[s] += 1
        if len(slots) == before:
            raise _stuck("the given one", len(slots), len(wanted))
    slots.sort(key=lambda slot: (slot.start, -slot.work))
    return Schedule("given", works, micro_batches, slots, peak)


def _stuck(name: str, done: int, total: int) -> GraphConfigError:
    return GraphConfigError(
        f"pipeline schedule {name}",
        f"after {done} of {total} tasks every stage waits for another",
        "a schedule never waits for a task that comes later on the same stage",
        "give every stage at least one credit, and backwards after their forwards",
    )
