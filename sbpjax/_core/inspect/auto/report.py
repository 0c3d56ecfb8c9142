"""Auto parallel report: tables of the plans side by side, then of every parameter and boundary activation.

    Train_0 on 8 ranks by the prices of h100 with 0.005 µs latency: 14 of 16 layouts chosen, gap 0.00 %

    plan               time  computing  updating    moving     bytes  collectives    memory
    found          120.4 µs    75.2 µs   10.1 µs   35.1 µs   15.8 MB           14  103.2 MB
    data parallel  402.0 µs    75.2 µs   10.8 µs  316.0 µs  142.2 MB            9  214.0 MB
    …
    your own       402.0 µs    75.2 µs   10.8 µs  316.0 µs  142.2 MB            9  214.0 MB

    parameter           number  shape         sbp  state  yours  per device
    model.*.up.weight       12  [4096, 1024]  S0          B          2.1 MB

    activation          number  shape            sbp  read as  line
    model.*.up.output       12  [8, 1024, 4096]  S2            train.py:31

Equal layers with equal layouts are one row. The other strategies are those of `_core.inspect.auto.baseline`, planned
with their pins by the same planner: between the pins each is as good as the planner can make it. ``your own`` has every
tensor where you laid it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from sbpjax._core.inspect.display import DisplayedReport, Table, bytes_text, microseconds
from sbpjax._core.programs.plan import Codes, Plan
from sbpjax.errors import SbpError
from sbpjax.graph.auto.plan_file import sharding_of
from sbpjax.graph.auto.planning_problem import BATCH, BUFFER, PARAMETER, PlanningProblem
from sbpjax.graph.auto.rows import TensorRow, activation_rows, input_rows, unknown_name_error
from sbpjax.sbp import algebra

from .baseline import hand_pins, strategies, title
from .cost_summary import Totals, totals
from .picture import bars, page

FOUND, OWN = "found", "your own"
_FASTER = 1e-3  # faster by less is noise of the solver


class Report(DisplayedReport):
    """The plan of a step, beside the plans of the usual strategies.

    Attributes:
        problem: the step.
        plan: the plan that was found.
        totals: the figures of every plan; the found one first.
        plans: every plan by its name.
        rows: every input and boundary activation.
    """

    def __init__(self, problem: PlanningProblem, plan: Plan, plans: dict[str, Plan]) -> None:
        self.problem, self.plan = problem, plan
        self.plans = {FOUND: plan, **plans}
        self.totals = [totals(problem, p, name) for name, p in self.plans.items()]
        self.rows = [*input_rows(problem, plan), *activation_rows(problem, plan)]

    def __getitem__(self, name: str) -> Totals:
        """Return the figures of a plan by its name, such as ``"found"`` or ``"data parallel"``."""
        return next(t for t in self.totals if t.name == name)

    def sbp(self, name: str) -> tuple:
        """Return the nd-sbp of an input or an activation by its full name."""
        for row in self.rows:
            if name in row.names:
                return algebra.to_sbp(row.codes)
        raise unknown_name_error(name, [n for row in self.rows for n in row.names], "report.sbp")

    def tables(self) -> list[Table]:
        """Return every table."""
        columns = ("plan", "time", "computing", "updating", "moving", "bytes", "collectives", "memory")
        found = [Table([_total_cells(t) for t in self.totals], columns, right=range(1, 8))]
        for kind in (PARAMETER, BUFFER, BATCH):
            rows = [r for r in self.rows if r.kind == kind]
            if rows:
                columns = (kind, "number", "shape", "sbp", "state", "yours", "per device")
                found.append(Table(_input_cells(rows), columns, right=(1, 6)))
        rows = [r for r in self.rows if r.kind == "activation"]
        if rows:
            columns = ("activation", "number", "shape", "sbp", "read as", "line")
            found.append(Table(_activation_cells(rows), columns, right=(1,)))
        return found

    def head(self) -> str:
        """Return the first line."""
        grid = " × ".join(map(str, self.problem.sizes))
        chosen = f"{len(self.problem.free)} of {len(self.problem.inputs)} layouts chosen"
        prices = f"by the prices of {self.problem.cost.title}"
        return f"{self.problem.title} on {grid} ranks {prices}: {chosen}, gap {100 * self.plan.gap:.2f} %"

    def notes(self) -> list[str]:
        """Return a note if a usual strategy that keeps the given layouts and the limit of memory is faster."""
        problem, found = self.problem, self[FOUND]
        if problem.marks or problem.cost.memory_us_per_byte:
            return []
        faster = [t for t in self.totals if t.time_us < found.time_us * (1 - _FASTER) and self._is_allowed(t)]
        if not faster:
            return []
        best = min(faster, key=lambda t: t.time_us)
        share = 100 * (1 - best.time_us / found.time_us)
        why = "the search finds a local optimum"
        if len(problem.sizes) > 1:
            why = "the gap covers plans that differ on one axis, not on several"
        use = f'report.save("sharding.py", plan="{best.name}")'
        return [f"{best.name} is {share:.1f} % faster: {why}. To use it: {use}, and load that file."]

    def _is_allowed(self, figures: Totals) -> bool:
        problem, plan = self.problem, self.plans[figures.name]
        keeps = all(x.is_free or codes == x.own for x, codes in zip(problem.inputs, plan.in_codes, strict=True))
        return keeps and (problem.memory_bytes is None or figures.memory_bytes <= problem.memory_bytes)

    def _blocks(self) -> Iterable[Any]:
        return self.head(), *self.notes(), *self.tables()

    def _repr_html_(self) -> str:
        return page(self)

    def as_dict(self) -> dict:
        """Return the report for JSON: figures of all plans, and the layouts of the found one."""
        return {
            "title": self.problem.title,
            "cost": self.problem.cost.name,
            "totals": {t.name: t.as_dict() for t in self.totals},
            "sharding": sharding_of(self.problem, self.plan).as_dict(),
        }

    def save(self, path: str | Path, *, plan: str = FOUND) -> Path:
        """Write the report, or the part chosen by the file's extension, to a file.

        Args:
            path: ``.txt`` (the tables), ``.html`` (tables and pictures), ``.svg`` (the bar chart), ``.json`` and
                ``.py`` (the plan, to edit and load back: `sbpjax.auto.load`).
            plan: the name of the plan in ``.json`` and ``.py``, such as ``"FSDP × tensor parallel"``.

        Returns:
            The path.

        Raises:
            SbpError: another ending, or no plan of that name.
        """
        path = Path(path)
        if plan not in self.plans:
            rule = f"one of {list(self.plans)}"
            raise SbpError(f"report.save({str(path)!r}, plan={plan!r})", f"the plan {plan!r}", rule, f'plan="{FOUND}"')
        sharding = sharding_of(self.problem, self.plans[plan])
        writers = {
            ".txt": lambda: f"{self}\n",
            ".html": lambda: page(self, whole=True),
            ".svg": lambda: bars(self.totals),
            ".json": lambda: sharding.json(),
            ".py": lambda: sharding.python(),
        }
        if path.suffix not in writers:
            raise SbpError(
                f"report.save({str(path)!r})",
                f"the ending {path.suffix!r}",
                f"one of {sorted(writers)}",
                'report.save("plan.html")',
            )
        path.write_text(writers[path.suffix](), encoding="utf-8")
        return path


def report(problem: PlanningProblem, plan: Plan | None = None, *, against: Sequence[str] | None = None) -> Report:
    """Return the report of a step.

    Args:
        problem: the step.
        plan: the plan that was found; made if there is none.
        against: strategies to compare with, as in `_core.inspect.auto.baseline`, and ``"own"``; by default all of them.
            Each is planned, which takes as long as the plan itself or less.
    """
    plan = problem.plan() if plan is None else plan
    names = [*strategies(problem), "own"] if against is None else against
    plans = {}
    for name in names:
        pins = problem.own_pins() if name == "own" else hand_pins(problem, name)
        marks = problem.marks if name == "own" else None
        plans[OWN if name == "own" else title(name)] = problem.plan(pins, marks, constrained=False)
    return Report(problem, plan, plans)


# -- cells -------------------------------------------------------------------------------------------------------------


def _total_cells(t: Totals) -> tuple[str, ...]:
    return (
        t.name,
        microseconds(t.time_us),
        microseconds(t.equations_us - t.update_us),
        microseconds(t.update_us),
        microseconds(t.interconnect_us),
        bytes_text(t.bytes),
        str(t.collectives),
        bytes_text(t.memory_bytes),
    )


def _input_cells(rows: list[TensorRow]) -> list[tuple[str, ...]]:
    return [
        (
            r.name, str(len(r.names)), str(list(r.shape)), algebra.nd_name(r.codes), _several(r.others),
            algebra.nd_name(r.own) if r.own is not None and r.own != r.codes else "", bytes_text(r.per_device),
        )
        for r in rows
    ]  # fmt: skip


def _activation_cells(rows: list[TensorRow]) -> list[tuple[str, ...]]:
    return [
        (r.name, str(len(r.names)), str(list(r.shape)), algebra.nd_name(r.codes), _several(r.others), r.line)
        for r in rows
    ]


def _several(codes: Sequence[Codes]) -> str:
    return " | ".join(map(algebra.nd_name, codes))
