"""`Pipeline`: a traced step over several placements, as tasks, a schedule, and transfers.

A step with micro-batches is three runs of tasks, *pre* and *post* once and *body* once per micro-batch:

    pre    micro-batches of the inputs, casts of weights
    body   forward and backward of each stage
    post   clipping, optimizers, the loss scale

Without micro-batches there is one run, and the stages work one after the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sbpjax._core.jax_private import Var
from sbpjax._core.planner.prices.cost import CostModel
from sbpjax._core.programs.normalise import Program, is_backward, live_equations
from sbpjax.sbp.layout import Layout
from sbpjax.sbp.placement import placement as Placement

from .loop import Carry, find_loop
from .partition import Partition, Send, Task, partition, places_of
from .schedule import BACKWARD, BOTH, FORWARD, WEIGHT, Schedule, Work, schedule
from .task import CompiledTask, arrival_layout, plan_task, replicated_layout
from .tied_weights import keep_sums_local
from .weights import with_weight_tasks


@dataclass
class Run:
    """Tasks that run once, or once per micro-batch.

    Attributes:
        tasks: the tasks, each after those that it needs.
        first: the sends before any of them: values that come from outside.
        sends: per task, its sends when it is done.
        outvars: the outputs.
    """

    tasks: list[CompiledTask] = field(default_factory=list)
    first: list[Send] = field(default_factory=list)
    sends: list[list[Send]] = field(default_factory=list)
    outvars: list = field(default_factory=list)


@dataclass
class Body(Run):
    """The tasks of a micro-batch.

    Attributes:
        count: how many micro-batches.
        iteration: the input that is the micro-batch's number.
        carries: the values passed from iteration to iteration.
        starts: for carries that start as a value without placement: their layout.
        schedule: the order.
        dropped: per task, the values that nothing needs any longer when it is done.
        outer: variable of the body → variable of the program around it.
    """

    count: int = 1
    iteration: Var | None = None
    carries: list[Carry] = field(default_factory=list)
    starts: dict[Var, Layout] = field(default_factory=dict)
    schedule: Schedule | None = None
    dropped: list[list[Var]] = field(default_factory=list)
    outer: dict[Var, Var] = field(default_factory=dict)


@dataclass
class Pipeline:
    """A planned step.

    Attributes:
        program: the flat program that was cut.
        stages: the placements, in the order in which a micro-batch comes to them.
        pre: the run before the micro-batches.
        body: the micro-batches; None for a step without.
        post: the run after them.
        layouts: the layouts of inputs and of all values between tasks.
        free: the equations without placement that starts of carries are made from.
    """

    program: Program
    stages: list[Placement]
    pre: Run
    body: Body | None
    post: Run
    layouts: dict[Var, Layout]
    free: list

    @property
    def compiled(self) -> list[CompiledTask]:
        """All tasks."""
        return [task for run in self.runs for task in run.tasks]

    @property
    def runs(self) -> list[Run]:
        """The runs before, for and after the micro-batches."""
        return [self.pre, self.post] if self.body is None else [self.pre, self.body, self.post]

    @property
    def sends(self) -> list[tuple[Send, Layout, int]]:
        """All transfers between placements: the value, its layout as it is sent, and the number of times per step."""
        runs = [(self.pre, 1), (self.post, 1)] + ([] if self.body is None else [(self.body, self.body.count)])
        found = [(s, 1) for run, _ in runs for s in run.first]
        found += [(s, times) for run, times in runs for sends in run.sends for s in sends]
        return [(s, self.layouts[s.value], times) for s, times in found]


@dataclass
class Planner:
    """Plans the tasks of one program.

    Attributes:
        program: the flat program.
        in_layouts: the layouts of its inputs; None for numbers and seeds.
        pins: output → the nd-sbp that it must have, for the state that is written.
        replaced: output → the input whose place it takes.
        cost: the prices.
        lowering: as `_core.compiler.compile.compile_program`.
        rule: which schedule.
        operation: the user's request, for messages.
        compiler_options: the user's options of XLA's compiler.
    """

    program: Program
    in_layouts: Sequence[Layout | None]
    pins: Mapping[Var, tuple]
    replaced: Mapping[Var, Var]
    cost: CostModel
    lowering: str
    rule: object
    operation: str
    compiler_options: Mapping[str, object]

    def plan(self) -> Pipeline:
        """Cut the program, plan every task, and find a schedule."""
        program = self.program
        self._layouts = {v: x for v, x in zip(program.invars, self.in_layouts, strict=True) if x is not None}
        places: dict[Var, Placement | None] = {v: x.placement for v, x in self._layouts.items()}
        loop = find_loop(program, set(places), self.operation)
        if loop is None:
            once = self._cut(program, places)
            run = self._run(once, {}, last=True)
            return Pipeline(program, _order(once.tasks), Run(), None, run, self._layouts, [])
        reads = set(loop.outer.values()) | {c.start for c in loop.carries if isinstance(c.start, Var)}
        reads |= {v for eqn in loop.post for v in eqn.invars if isinstance(v, Var)}
        reads |= {v for v in program.outvars if isinstance(v, Var)}
        # These depend on no array, and are made again by every task that reads them.
        free = {v for eqn in loop.free for v in eqn.outvars}
        made = [v for eqn in loop.pre for v in eqn.outvars if v not in free]
        wanted = [v for v in made if v in reads]
        before = self._cut(Program(program.invars, program.consts, loop.pre, wanted), places)
        places.update({v: p for v, p in before.where.items() if p is not None})
        pre = self._run(before, {})
        keep_sums_local(loop)
        body = self._body(loop, places)
        last = {c.last: self._layouts[c.last].placement for c in loop.carries if c.last in self._layouts}
        places.update(last)
        inputs = [*program.invars, *wanted, *(c.last for c in loop.carries)]
        behind = self._cut(Program(inputs, program.consts, loop.post, program.outvars), places)
        post = self._run(behind, {}, last=True)
        return Pipeline(program, self._stages, pre, body, post, self._layouts, loop.free)

    # -- parts -----------------------------------------------------------------------------------------------------

    def _cut(self, program: Program, places: Mapping) -> Partition:
        home = next((p for p in reversed(list(places.values())) if p is not None), None)
        return partition(program, places, home=home, operation=self.operation, is_backward=is_backward)

    def _body(self, loop, places: Mapping) -> Body:
        inner: dict[Var, Placement | None] = {own: places.get(v) for own, v in loop.outer.items()}
        for carry in loop.carries:
            inner[carry.before] = places.get(carry.start) if isinstance(carry.start, Var) else None
        # A sum starts as zeros without placement, and ends where it is made.
        for _ in loop.carries:
            ends = zip(loop.carries, places_of(loop.body, inner, self.operation), strict=True)
            found = {c.before: place for c, place in ends if inner[c.before] is None and place is not None}
            if not found:
                break
            inner.update(found)
        home = next(p for p in reversed(list(inner.values())) if p is not None)
        for carry in loop.carries:
            if inner[carry.before] is None:
                inner[carry.before] = home
        cut = self._cut(loop.body, inner)
        if self.rule == "zero_bubble":
            cut = with_weight_tasks(cut)
        for carry, after in zip(loop.carries, cut.outvars, strict=True):
            carry.after = after
        self._stages = _order(cut.tasks)
        body = Body(count=loop.count, iteration=loop.iteration, carries=loop.carries, outer=loop.outer)
        for own, v in loop.outer.items():
            if v in self._layouts:
                self._layouts[own] = self._layouts[v]
        tied: dict[Var, Var] = {}
        for carry in loop.carries:
            readers = [t for t in cut.tasks if carry.before in t.ins]
            makers = [t for t in cut.tasks if carry.after in t.outs] if isinstance(carry.after, Var) else []
            if isinstance(carry.start, Var) and carry.start in self._layouts:
                self._layouts[carry.before] = self._layouts[carry.start]
            # Read by another task than makes it: no one plan can choose its layout, so it is whole.
            elif [id(t) for t in readers] != [id(t) for t in makers]:
                self._layouts[carry.before] = replicated_layout(inner[carry.before], carry.before.aval)
            if makers:
                if carry.before in self._layouts:
                    self._pin(carry.after, self._layouts[carry.before])
                else:
                    tied[carry.after] = carry.before
        run = self._run(cut, tied, loop.body.consts, signals=True)
        body.tasks, body.first, body.sends, body.outvars = run.tasks, run.first, run.sends, run.outvars
        for carry in loop.carries:
            layout = self._layouts.get(carry.after if isinstance(carry.after, Var) else carry.before)
            layout = layout or self._layouts[carry.before]
            self._layouts.setdefault(carry.before, layout)
            self._layouts[carry.last] = layout
            if not (isinstance(carry.start, Var) and places.get(carry.start) is not None):
                body.starts[carry.before] = layout
        body.schedule = schedule(self.rule, works_of(cut, self._stages), loop.count)
        body.dropped = _last_uses(cut, body, keep={c.after for c in loop.carries})
        return body

    def _pin(self, v: Var, layout: Layout) -> None:
        self.pins = {**self.pins, v: layout.sbp}

    def _run(
        self, cut: Partition, tied: Mapping[Var, Var], consts=None, signals: bool = False, last: bool = False
    ) -> Run:
        run = Run()
        consts = self.program.consts if consts is None else consts
        targets: dict[Var, list] = {}
        for send in cut.sends:
            targets.setdefault(send.value, []).append(send.target)
        waiting = list(cut.sends)
        # After the micro-batches only: before, a stage may still read the state that another one's task would take
        # over.
        taken = self._exclusive_state(cut) if last else {}
        for number, task in enumerate(cut.tasks):
            waiting = self._set_arrival_layouts(waiting)
            done = plan_task(
                task,
                self._layouts,
                consts,
                tied=tied,
                pins=self.pins,
                sent=targets,
                donate=[tied[v] for v in task.outs if v in tied] + taken.get(number, []),
                signals=signals,
                cost=self.cost,
                lowering=self.lowering,
                compiler_options=self.compiler_options,
            )
            run.tasks.append(done)
            self._layouts.update(zip(task.outs, done.out_layouts, strict=False))
            self._layouts.update({v: x for v, x in zip(task.ins, done.in_layouts, strict=True) if cut.where.get(v)})
        made = {v: i for i, t in enumerate(cut.tasks) for v in t.outs}
        run.first = [s for s in cut.sends if s.value not in made]
        run.sends = [[s for s in cut.sends if made.get(s.value) == i] for i in range(len(cut.tasks))]
        run.outvars = cut.outvars
        self._set_arrival_layouts(waiting)
        return run

    def _exclusive_state(self, cut: Partition) -> dict[int, list[Var]]:
        """Return per task the state that it replaces and that nothing else reads, once such tasks come last."""
        self._put_updates_last(cut)
        read = _read_by_tasks(cut)
        kept = {s.value for s in cut.sends}.union(v for v in cut.outvars if isinstance(v, Var))
        last = {v: number for number, task in enumerate(cut.tasks) for v in task.ins}
        found: dict[int, list[Var]] = {}
        for number, task in enumerate(cut.tasks):
            taken = [before for out in task.outs if (before := self.replaced.get(out)) in task.ins]
            taken = [v for v in dict.fromkeys(taken) if last[v] == number and v not in kept]
            if taken and read.isdisjoint(task.outs):
                found[number] = taken
        return found

    def _put_updates_last(self, cut: Partition) -> None:
        """Move equations that make new state only, for which no other task waits, to tasks of their own at the end.

        The driver runs these tasks in one exchange (`_core.tensor.storage.exchange`), when all else is done.
        """
        wanted, updates = _read_by_tasks(cut), []
        for task in cut.tasks:
            late = [v for v in task.outs if v not in wanted and self.replaced.get(v) in task.ins]
            early = [v for v in task.outs if v not in late]
            if not late or not early:
                continue
            eqns = live_equations(task.eqns, early)
            first = set(map(id, eqns))
            # Equations that depend on no placed value are repeated.
            free = {v for v, place in cut.where.items() if place is None}
            rest = live_equations([e for e in task.eqns if id(e) not in first or free.issuperset(e.outvars)], late)
            made = {v for eqn in rest for v in eqn.outvars}
            read = dict.fromkeys(v for eqn in rest for v in eqn.invars if isinstance(v, Var) and v not in made)
            between = {v for eqn in eqns for v in eqn.outvars}
            known = between.union(task.ins)
            if any(v not in made for v in late):  # it is passed on as it is
                continue
            updates.append(replace(task, eqns=rest, ins=[v for v in read if v in known], outs=late))
            task.eqns, task.outs = eqns, [*early, *(v for v in read if v in between and v not in early)]
            used = {v for eqn in eqns for v in eqn.invars if isinstance(v, Var)}.union(task.outs)
            task.ins = [v for v in task.ins if v in used]
        cut.tasks += updates

    def _set_arrival_layouts(self, waiting: list[Send]) -> list[Send]:
        """Give values that arrive their layouts, as soon as they are known to be sent."""
        left = []
        for send in waiting:
            if send.value in self._layouts:
                self._layouts.setdefault(send.arrived, arrival_layout(self._layouts[send.value], send.target))
            else:
                left.append(send)
        return left


def _read_by_tasks(cut: Partition) -> set[Var]:
    """Return the values that other tasks and other placements read."""
    return {s.value for s in cut.sends}.union(*(task.ins for task in cut.tasks))


def _order(tasks: Sequence[Task]) -> list[Placement]:
    return list(dict.fromkeys(task.placement for task in tasks))


def works_of(cut: Partition, stages: list[Placement]) -> list[Work]:
    """Return the tasks of a micro-batch as a schedule sees them; a forward costs 1, a backward 2."""
    made = {v: i for i, t in enumerate(cut.tasks) for v in t.outs}
    made |= {s.arrived: made[s.value] for s in cut.sends if s.value in made}
    chunk: dict[tuple, int] = {}
    forwards = [t for t in cut.tasks if t.forward]
    for t in forwards:
        chunk.setdefault((id(t.placement), t.depth), len(chunk))
    split = {t.placement for t in cut.tasks if t.weights}
    works = []
    open_chunks: dict[Placement, list[int]] = {}
    for i, t in enumerate(cut.tasks):
        after = tuple(sorted({made[v] for v in t.ins if v in made and made[v] != i}))
        if t.forward:
            number = chunk[id(t.placement), t.depth]
            kind = BOTH if t.backward else FORWARD
            if not t.backward:
                open_chunks.setdefault(t.placement, []).append(number)
        else:
            kind = WEIGHT if t.weights else BACKWARD
            held = open_chunks.get(t.placement, [])
            # Backwards of a stage come in the reverse order of its forwards: the chunk that was opened last is closed
            # first.
            number = works[after[-1]].chunk if kind == WEIGHT else held.pop() if held else 0
        whole = {FORWARD: 1.0, BACKWARD: 2.0, BOTH: 3.0, WEIGHT: 1.0}[kind]
        # Where gradients of weights are tasks of their own, a backward is only the rest.
        cost = whole - 1.0 if kind in (BACKWARD, BOTH) and t.placement in split else whole
        works.append(Work(stages.index(t.placement), number, kind, cost, after))
    return works


def _last_uses(cut: Partition, body: Body, keep: set) -> list[list[Var]]:
    """Return per task the values of a micro-batch that no later task reads."""
    last: dict[Var, int] = {}
    for i, t in enumerate(cut.tasks):
        for v in (*t.outs, *t.ins):
            last[v] = i
    outer = set(body.outer) | {body.iteration} | keep
    rows: list[list[Var]] = [[] for _ in cut.tasks]
    for v, i in last.items():
        # The driver drops them with this task: else the activations of every micro-batch would live to the end of the
        # step.
        if v not in outer and cut.where.get(v) is not None:
            rows[i].append(v)
    return rows


def named_tasks(pipeline: Any) -> list[tuple[Any, str, int]]:
    """Return every task of a pipeline with a name and how often it runs per step."""
    found = [(task, "pre", 1) for task in pipeline.pre.tasks]
    if pipeline.body is not None:
        works = pipeline.body.schedule.works
        found += [(task, f"{w.kind}{w.chunk}", pipeline.body.count) for task, w in zip(pipeline.body.tasks, works)]
    return found + [
        (task, "post" if pipeline.body is not None else f"task {i}", 1) for i, task in enumerate(pipeline.post.tasks)
    ]
