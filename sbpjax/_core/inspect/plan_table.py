"""Plans as tables: the strategy of every equation, and every conversion with its collective.

    equation                 strategy                  line
    dot_general              S0,B | B,S0 → S0,P        train.py:31
    ...
    boxing                   collective                bytes   for          line
    f32[8,16] S0,P → S0,B    all_reduce(a1)              384   add          train.py:31

`Explanation` renders a `Plan` as text (``print(explanation)``) and as HTML (in a notebook). Its numbers are the
plan's own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sbpjax._core.ops.attention import primitive as attention_primitive
from sbpjax._core.programs.normalise import source_line
from sbpjax._core.programs.plan import Boxing, Plan
from sbpjax.sbp import algebra

from .display import DisplayedReport, Table

COLLECTIVES = {"psum": "all_reduce", "psum_scatter": "reduce_scatter"}


@dataclass(repr=False)
class Explanation(DisplayedReport):
    """The plan of a program, as tables.

    Attributes:
        plan: the plan.
        title: the planned program.
        axis_names: the names of the placement's axes; by default ``a0``, ``a1``, ….
    """

    plan: Plan
    title: str = "program"
    axis_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.axis_names = self.axis_names or algebra.axis_names(self.plan.sizes)

    @property
    def boxings(self) -> list[Boxing]:
        """Every conversion, in program order."""
        return self.plan.boxings

    @property
    def bytes(self) -> int:
        """Bytes that one device receives over the interconnect in one run."""
        return self.plan.bytes

    def equations(self) -> list[tuple[str, str, str]]:
        """Return ``(primitive, strategy, line)`` of every equation on more than scalars."""
        found = []
        for i, eqn in enumerate(self.plan.program.eqns):
            if any(getattr(v.aval, "shape", ()) for v in (*eqn.invars, *eqn.outvars)):
                found.append((eqn.primitive.name, _strategy(self.plan, i), source_line(eqn)))
        return found

    def conversions(self) -> list[tuple[str, str, str, str, str]]:
        """Return ``(tensor and sbps, collectives, bytes, reader, line)`` of every conversion."""
        return [
            (
                f"{short_dtype(b.dtype)}{list(b.shape)} {algebra.nd_name(b.source)} → {algebra.nd_name(b.target)}",
                " + ".join(f"{COLLECTIVES.get(s.kind, s.kind)}({self.axis_names[s.axis]})" for s in b.steps),
                str(b.bytes),
                b.reader,
                b.line,
            )
            for b in self.boxings
        ]

    def losses(self) -> list[str]:
        """Return a line for each loss of a linear layer that is computed without its logits as a whole."""
        return list(dict.fromkeys(_fused_loss_lines(self.plan)))

    def kernels(self, platform: str) -> list[str]:
        """Return a line for each attention that is one equation: by which kernel it runs on a platform, and why."""
        return list(dict.fromkeys(_kernels(self.plan, platform)))

    def _summary(self) -> str:
        moving = sum(b.bytes > 0 for b in self.boxings)
        inner = f", {self.plan.inner_bytes} B of them inside equations" if self.plan.inner_bytes else ""
        grid = " × ".join(map(str, self.plan.sizes))
        where = f"{grid} rank{'s' * (grid != '1')}"
        return f"{self.title} on {where}: {self.bytes} B per device in {moving} boxing{'s' * (moving != 1)}{inner}"

    def _blocks(self) -> Iterable[Any]:
        yield self._summary()
        yield from self.losses()
        if equations := self.equations():
            yield Table(equations, ("equation", "strategy", "line"))
        if conversions := self.conversions():
            yield Table(conversions, ("boxing", "collective", "bytes", "for", "line"), right=(2,))


def _fused_loss_lines(plan: Plan) -> Iterable[str]:
    for i, eqn in enumerate(plan.program.eqns):
        if i in plan.bodies:
            yield from _fused_loss_lines(plan.bodies[i])
        elif eqn.primitive.name in ("linear_cross_entropy", "linear_cross_entropy_grad"):
            x, w = (v.aval for v in eqn.invars[:2])
            logits = f"{short_dtype(str(x.dtype))}{[*x.shape[:-1], w.shape[0]]}"
            where = source_line(eqn)
            yield f"linear and cross_entropy are one op: the logits {logits} are never whole" + f" ({where})" * bool(
                where
            )


def _kernels(plan: Plan, platform: str) -> Iterable[str]:
    for i, eqn in enumerate(plan.program.eqns):
        if i in plan.bodies:
            yield from _kernels(plan.bodies[i], platform)
        elif eqn.primitive.name in ("attention", "attention_grad"):
            q = eqn.invars[0].aval
            where = source_line(eqn)
            kernel = attention_primitive.choice(eqn, platform)
            yield (
                f"{eqn.primitive.name} of {short_dtype(str(q.dtype))}{list(q.shape)} by {kernel}"
                + f" ({where})" * bool(where)
            )


def _strategy(plan: Plan, i: int) -> str:
    eqn = plan.program.eqns[i]
    ins = " | ".join(algebra.nd_name(c) for c in (plan.ins(i) if eqn.invars else ()))
    outs = " | ".join(algebra.nd_name(c) for c in (plan.outs(i) if eqn.outvars else ()))
    return f"{ins} → {outs}"


def short_dtype(dtype: str) -> str:
    """Return the name of a dtype as HLO writes it: ``"f32"`` for ``"float32"``."""
    for long, short in (("bfloat", "bf"), ("float", "f"), ("uint", "u"), ("int", "i"), ("complex", "c")):
        if dtype.startswith(long):
            return short + dtype[len(long) :]
    return dtype
