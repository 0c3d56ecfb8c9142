"""What auto parallelism chose, as tables: the plans side by side, then every parameter and boundary activation.

    Train_0 on 8 ranks by the prices of h100: 14 of 16 layouts chosen, gap 0.00 %

    plan               time     moving     bytes    memory
    found          120.4 µs    35.1 µs   15.8 MB  103.2 MB
    data parallel  402.0 µs   316.0 µs  142.2 MB  214.0 MB
    …
    your own       402.0 µs   316.0 µs  142.2 MB  214.0 MB

    parameter           number  shape         sbp  state  yours  per device
    model.*.up.weight       12  [4096, 1024]  S0          B          2.1 MB

    activation          number  shape            sbp  read as  line
    model.*.up.output       12  [8, 1024, 4096]  S2            train.py:31

Equal layers that lie alike are one row. The other strategies are those of `sbpjax.auto.hand`, planned with their pins
by the same planner: between the pins each is as good as the planner can make it. ``your own`` has every tensor where
you laid it.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jax.extend.core import Var

from sbpjax.errors import SbpError, message
from sbpjax.sbp import algebra
from sbpjax.sbp.layout import local_shape
from sbpjax.sbp.plan.types import Codes, Plan

from .activations import Activation, activations, codes_of
from .hand import hand_pins, strategies, title
from .subject import BATCH, BUFFER, PARAMETER, STATE, Subject
from .totals import Totals, totals

FOUND, OWN = "found", "your own"


@dataclass(frozen=True)
class Row:
    """One line of the tables: an input or an activation, or several of equal layers.

    Attributes:
        kind: what it is; ``activation``, or a kind of `sbpjax.auto.subject.Input`.
        name: its name, with ``*`` where equal layers differ.
        names: the names of all of them.
        shape: the logical shape.
        dtype: the dtype.
        codes: the nd-sbp in the plan.
        others: of a parameter, the nd-sbps of its states that differ from its own; of an activation, those in which it
            is read that differ.
        own: of an input, where the user laid it.
        per_device: bytes on one device, of one of them.
        line: of an activation, the user's ``file:line``.
    """

    kind: str
    name: str
    names: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: Any
    codes: Codes
    others: tuple[Codes, ...] = ()
    own: Codes | None = None
    per_device: int = 0
    line: str = ""


class Report:
    """What a plan says of a step, beside the plans of the usual strategies.

    Attributes:
        subject: the step.
        plan: the plan that was found.
        totals: the figures of every plan; the found one first.
        plans: every plan by its name.
        rows: every input and boundary activation.
    """

    def __init__(self, subject: Subject, plan: Plan, plans: dict[str, Plan]) -> None:
        self.subject, self.plan = subject, plan
        self.plans = {FOUND: plan, **plans}
        self.totals = [totals(subject, p, name) for name, p in self.plans.items()]
        self.rows = [*_input_rows(subject, plan), *activation_rows(subject, plan)]

    def __getitem__(self, name: str) -> Totals:
        """Return the figures of a plan by its name, such as ``"found"`` or ``"data parallel"``."""
        return next(t for t in self.totals if t.name == name)

    def sbp(self, name: str) -> tuple:
        """Return the nd-sbp of an input or an activation by its full name."""
        for row in self.rows:
            if name in row.names:
                return algebra.to_sbp(row.codes)
        raise unknown(name, [n for row in self.rows for n in row.names], "report.sbp")

    def tables(self) -> list[tuple[tuple[str, ...], list[tuple[str, ...]]]]:
        """Return head and rows of every table, as text."""
        found: list[tuple[tuple[str, ...], list[tuple[str, ...]]]] = []
        found.append((("plan", "time", "moving", "bytes", "memory"), [_total_cells(t) for t in self.totals]))
        for kind in (PARAMETER, BUFFER, BATCH):
            rows = [r for r in self.rows if r.kind == kind]
            if rows:
                found.append(((kind, "number", "shape", "sbp", "state", "yours", "per device"), _input_cells(rows)))
        rows = [r for r in self.rows if r.kind == "activation"]
        if rows:
            found.append((("activation", "number", "shape", "sbp", "read as", "line"), _activation_cells(rows)))
        return found

    def head(self) -> str:
        """Return the first line."""
        grid = " × ".join(map(str, self.subject.sizes))
        chosen = f"{len(self.subject.free)} of {len(self.subject.inputs)} layouts chosen"
        prices = f"by the prices of {self.subject.cost.name}"
        return f"{self.subject.title} on {grid} ranks {prices}: {chosen}, gap {100 * self.plan.gap:.2f} %"

    def __str__(self) -> str:
        return "\n\n".join([self.head(), *(_text(head, rows) for head, rows in self.tables())])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from .picture import page

        return page(self)

    def as_dict(self) -> dict:
        """Return the report for JSON: figures of all plans, and the layouts of the found one."""
        from .plan_file import sharding_of

        return {
            "title": self.subject.title,
            "cost": self.subject.cost.name,
            "totals": {t.name: t.as_dict() for t in self.totals},
            "sharding": sharding_of(self.subject, self.plan).as_dict(),
        }

    def save(self, path: str | Path) -> Path:
        """Write the report, or what its name's ending says, to a file.

        Args:
            path: ``.txt`` (the tables), ``.html`` (tables and pictures), ``.svg`` (the bar chart), ``.json`` and
                ``.py`` (the plan, to edit and load back: `sbpjax.auto.load`).

        Returns:
            The path.

        Raises:
            SbpError: another ending.
        """
        from .picture import bars, page
        from .plan_file import sharding_of

        path = Path(path)
        writers = {
            ".txt": lambda: f"{self}\n",
            ".html": lambda: page(self, whole=True),
            ".svg": lambda: bars(self.totals),
            ".json": lambda: sharding_of(self.subject, self.plan).json(),
            ".py": lambda: sharding_of(self.subject, self.plan).python(),
        }
        if path.suffix not in writers:
            raise SbpError(
                message(
                    f"report.save({str(path)!r})",
                    f"the ending {path.suffix!r}",
                    f"one of {sorted(writers)}",
                    'report.save("plan.html")',
                )
            )
        path.write_text(writers[path.suffix](), encoding="utf-8")
        return path


def report(subject: Subject, plan: Plan | None = None, *, against: Sequence[str] | None = None) -> Report:
    """Return the report of a step.

    Args:
        subject: the step.
        plan: the plan that was found; made if there is none.
        against: strategies to compare with, as in `sbpjax.auto.hand`, and ``"own"``; by default all of them. Each is
            planned, which takes as long as the plan itself or less.
    """
    plan = subject.plan() if plan is None else plan
    names = [*strategies(subject), "own"] if against is None else against
    plans = {}
    for name in names:
        pins = subject.own_pins() if name == "own" else hand_pins(subject, name)
        marks = subject.marks if name == "own" else None
        plans[OWN if name == "own" else title(name)] = subject.plan(pins, marks, obeys=False)
    return Report(subject, plan, plans)


def unknown(name: str, known: Sequence[str], asked: str) -> SbpError:
    """Return the error for a name that no input and no activation has."""
    near = [k for k in known if name.lower() in k.lower()] or list(known)
    return SbpError(
        message(
            f"{asked}({name!r})",
            f"no tensor of the step is called {name!r}",
            "a name is that of an input or of a boundary activation, as the report lists them",
            f"e.g. {near[0]!r}" if near else "print(report)",
        )
    )


# -- rows --------------------------------------------------------------------------------------------------------------


def _input_rows(subject: Subject, plan: Plan) -> list[Row]:
    states: dict[int, set[Codes]] = {}
    for i, x in enumerate(subject.inputs):
        if x.kind == STATE and x.parent is not None and x.shape == subject.inputs[x.parent].shape:
            states.setdefault(x.parent, set()).add(plan.in_codes[i])
    rows = []
    for i, x in enumerate(subject.inputs):
        codes = plan.in_codes[i]
        if not x.shape or x.kind not in (PARAMETER, BUFFER, BATCH):
            continue
        others = tuple(sorted(x.told(c) for c in states.get(i, set()) - {codes}))
        held = math.prod(local_shape(x.tensor_shape, x.told(codes), subject.sizes)) * x.dtype.itemsize
        rows.append(Row(x.kind, x.name, x.names, x.tensor_shape, x.dtype, x.told(codes), others, x.told(x.own), held))
    return grouped(rows)


def activation_rows(subject: Subject, plan: Plan) -> list[Row]:
    """Return a row for every boundary activation of a step, with the layouts that it is read in besides its own."""
    rows = []
    for a in activations(plan.program):
        codes = codes_of(plan, a)
        if codes is not None:
            others = tuple(sorted(_read_as(plan, a) - {codes}))
            held = math.prod(local_shape(a.shape, codes, subject.sizes)) * a.dtype.itemsize
            rows.append(
                Row("activation", a.name, (a.name,), a.shape, a.dtype, codes, others, None, held, a.line.split("/")[-1])
            )
    return grouped(rows)


def _read_as(plan: Plan, a: Activation) -> set[Codes]:
    for i in a.loops:
        plan = plan.bodies[i]
    made = plan.program.eqns[a.eqn].outvars[a.position]
    variables = {
        made,
        *(e.outvars[0] for e in plan.program.eqns if e.primitive.name == "to_sbp" and e.invars[0] is made),
    }
    return {
        codes
        for i, eqn in enumerate(plan.program.eqns)
        if eqn.invars and eqn.primitive.name != "to_sbp"
        for v, codes in zip(eqn.invars, plan.ins(i), strict=True)
        if isinstance(v, Var) and v in variables
    }


# A part of a name that is a number: that of a layer.
NUMBER = re.compile(r"(?<![^.])\d+(?![^.])")


def grouped(rows: list[Row]) -> list[Row]:
    """Return the rows with those of equal layers as one, where all of a pattern lie alike."""
    patterns: dict[str, list[Row]] = {}
    for row in rows:
        patterns.setdefault(NUMBER.sub("*", row.name), []).append(row)
    found = []
    for pattern, members in patterns.items():
        first = members[0]
        alike = {(r.kind, r.shape, str(r.dtype), r.codes, r.others, r.own, r.per_device) for r in members}
        if len(members) == 1 or len(alike) > 1:
            found += members
        else:
            names = tuple(n for r in members for n in r.names)
            found.append(
                Row(first.kind, pattern, names, first.shape, first.dtype, first.codes, first.others, first.own,
                    first.per_device, first.line)
            )  # fmt: skip
    return found


# -- cells -------------------------------------------------------------------------------------------------------------


def microseconds(us: float) -> str:
    """Return a time as people read it."""
    return f"{us / 1e3:.2f} ms" if us >= 1e4 else f"{us:.1f} µs" if us >= 10 or not us else f"{us:.3g} µs"


def _total_cells(t: Totals) -> tuple[str, ...]:
    from sbpjax.graph.memory import bytes_text

    return t.name, microseconds(t.time_us), microseconds(t.wire_us), bytes_text(t.bytes), bytes_text(t.memory_bytes)


def _input_cells(rows: list[Row]) -> list[tuple[str, ...]]:
    from sbpjax.graph.memory import bytes_text

    return [
        (
            r.name, str(len(r.names)), str(list(r.shape)), algebra.nd_name(r.codes), _several(r.others),
            algebra.nd_name(r.own) if r.own is not None and r.own != r.codes else "", bytes_text(r.per_device),
        )
        for r in rows
    ]  # fmt: skip


def _activation_cells(rows: list[Row]) -> list[tuple[str, ...]]:
    return [
        (r.name, str(len(r.names)), str(list(r.shape)), algebra.nd_name(r.codes), _several(r.others), r.line)
        for r in rows
    ]


def _several(codes: Sequence[Codes]) -> str:
    return " | ".join(map(algebra.nd_name, codes))


_RIGHT = frozenset(("time", "moving", "bytes", "memory", "number", "per device"))


def _text(head: Sequence[str], rows: list[tuple[str, ...]]) -> str:
    table = [tuple(head), *rows]
    widths = [max(len(row[k]) for row in table) for k in range(len(head))]
    return "\n".join(
        "  ".join(
            c.rjust(w) if name in _RIGHT else c.ljust(w) for c, w, name in zip(row, widths, head, strict=True)
        ).rstrip()
        for row in table
    )


def html_table(head: Sequence[str], rows: list[tuple[str, ...]]) -> str:
    """Return a table as HTML."""
    cells = "".join(f"<th>{html.escape(c)}</th>" for c in head)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(c)}</td>" for c in row) + "</tr>" for row in rows)
    return f"<table><tr>{cells}</tr>{body}</table>"
