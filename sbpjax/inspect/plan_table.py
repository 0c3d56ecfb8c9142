"""Plans as tables: which signature every equation got, and what is moved where.

    equation                 signature                 line
    dot_general              S0,B | B,S0 → S0,P        train.py:31
    ...
    boxing                   collective                bytes   for          line
    f32[8,16] S0,P → S0,B    all_reduce(a1)              384   add          train.py:31

`Explanation` renders a `Plan` as text (``print(explanation)``) and as HTML (in a notebook). Its numbers are the
plan's own.
"""

from __future__ import annotations

import html
from dataclasses import dataclass

from sbpjax.programs.normalise import source_line
from sbpjax.programs.plan import Boxing, Plan
from sbpjax.sbp import algebra
from sbpjax.sbp.conversion_steps import Step

_NAMES = {"psum": "all_reduce", "psum_scatter": "reduce_scatter"}


@dataclass
class Explanation:
    """What a plan does, as tables.

    Attributes:
        plan: the plan.
        title: what was planned.
    """

    plan: Plan
    title: str = "program"

    @property
    def boxings(self) -> list[Boxing]:
        """Every conversion, in program order."""
        return self.plan.boxings

    @property
    def bytes(self) -> int:
        """What one device receives over the wire in one run."""
        return self.plan.bytes

    def equations(self) -> list[tuple[str, str, str]]:
        """Return ``(primitive, signature, line)`` of every equation that touches more than scalars."""
        found = []
        for i, eqn in enumerate(self.plan.program.eqns):
            if any(getattr(v.aval, "shape", ()) for v in (*eqn.invars, *eqn.outvars)):
                found.append((eqn.primitive.name, _signature(self.plan, i), source_line(eqn)))
        return found

    def conversions(self) -> list[tuple[str, str, str, str, str]]:
        """Return ``(tensor and sbps, collectives, bytes, reader, line)`` of every conversion."""
        return [
            (
                f"{_short(b.dtype)}{list(b.shape)} {algebra.nd_name(b.source)} → {algebra.nd_name(b.target)}",
                " + ".join(_step(s) for s in b.steps),
                str(b.bytes),
                b.reader,
                b.line,
            )
            for b in self.boxings
        ]

    def _tables(self):
        yield ("equation", "signature", "line"), self.equations()
        yield ("boxing", "collective", "bytes", "for", "line"), self.conversions()

    def _summary(self) -> str:
        moving = sum(b.bytes > 0 for b in self.boxings)
        inner = f", {self.plan.inner_bytes} B of them inside equations" if self.plan.inner_bytes else ""
        grid = " × ".join(map(str, self.plan.sizes))
        return f"{self.title} on {grid} ranks: {self.bytes} B per device in {moving} boxing{'s' * (moving != 1)}{inner}"

    def __str__(self) -> str:
        parts = [self._summary()]
        parts += [_text_table(head, rows) for head, rows in self._tables() if rows]
        return "\n\n".join(parts)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        body = "".join(_html_table(head, rows) for head, rows in self._tables() if rows)
        return f"<p>{html.escape(self._summary())}</p>{body}"


def _signature(plan: Plan, i: int) -> str:
    eqn = plan.program.eqns[i]
    ins = " | ".join(algebra.nd_name(c) for c in (plan.ins(i) if eqn.invars else ()))
    outs = " | ".join(algebra.nd_name(c) for c in (plan.outs(i) if eqn.outvars else ()))
    return f"{ins} → {outs}"


def _step(step: Step) -> str:
    return f"{_NAMES.get(step.kind, step.kind)}(a{step.axis})"


def _short(dtype: str) -> str:
    for long, short in (("bfloat", "bf"), ("float", "f"), ("uint", "u"), ("int", "i"), ("complex", "c")):
        if dtype.startswith(long):
            return short + dtype[len(long) :]
    return dtype


def _text_table(head, rows) -> str:
    table = [head, *rows]
    widths = [max(len(row[k]) for row in table) for k in range(len(head))]
    right = {k for k, name in enumerate(head) if name == "bytes"}
    lines = []
    for row in table:
        cells = (c.rjust(w) if k in right else c.ljust(w) for k, (c, w) in enumerate(zip(row, widths, strict=True)))
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _html_table(head, rows) -> str:
    def line(cells, tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(c)}</{tag}>" for c in cells) + "</tr>"

    return "<table>" + line(head, "th") + "".join(line(r, "td") for r in rows) + "</table>"
