"""`sensitivity`: sensitivity of a plan: the cost of another layout for one tensor.

    >>> print(sensitivity(problem, plan, "h.*.wq", "B"))
    h.*.wq (2 tensors): S1 → B
    time    +35.1 µs  (+12.4 %)
    bytes   +7.3 MB   (+22.0 %)
    memory  +14.7 MB  (+3.1 %)
    would change too: m.h.*.wq S1 → B, v.h.*.wq S1 → B
    also moved: f32[1024,1024] P → B (all_reduce(a0), 7.3 MB) for mul × 2
    no longer moved: …

The step is planned once more with that one pin; everything else is free again, so the figure is the price of the choice
and not of a plan that was not allowed to adapt. A figure below zero would mean that the search had missed a plan: on
N-D placements it may.
"""

from __future__ import annotations

import fnmatch
from collections import Counter
from dataclasses import dataclass

from sbpjax._core.inspect.display import bytes_text, microseconds
from sbpjax._core.planner.boundaries import activations, codes_of
from sbpjax._core.programs.plan import Codes, Plan
from sbpjax.graph.auto.planning_problem import PlanningProblem
from sbpjax.graph.auto.rows import unknown_name_error
from sbpjax.sbp import algebra

from .cost_summary import Totals, totals


@dataclass(frozen=True)
class LayoutSensitivity:
    """The price of a layout.

    Attributes:
        name: the tensor's name, or a pattern.
        names: the tensors.
        before: their nd-sbps in the plan.
        requested: the requested nd-sbp.
        plan: the plan with that pin.
        found: the figures of the plan before.
        forced: the figures with the pin.
        follows: ``(name, before, after)`` of every other tensor whose layout would change.
        more: conversions that would come in addition, as text, with their number.
        less: conversions that would go.
    """

    name: str
    names: tuple[str, ...]
    before: tuple[Codes, ...]
    requested: Codes
    plan: Plan
    found: Totals
    forced: Totals
    follows: tuple[tuple[str, Codes, Codes], ...]
    more: tuple[tuple[str, int], ...]
    less: tuple[tuple[str, int], ...]

    @property
    def time_us(self) -> float:
        """By how much the modelled time grows."""
        return self.forced.time_us - self.found.time_us

    @property
    def bytes(self) -> int:
        """By how many the bytes on the interconnect grow."""
        return self.forced.bytes - self.found.bytes

    @property
    def memory_bytes(self) -> int:
        """By how many the bytes in memory grow."""
        return self.forced.memory_bytes - self.found.memory_bytes

    def __str__(self) -> str:
        was = " | ".join(dict.fromkeys(map(algebra.nd_name, self.before)))
        count = f" ({len(self.names)} tensors)" if len(self.names) > 1 else ""
        lines = [f"{self.name}{count}: {was} → {algebra.nd_name(self.requested)}"]
        for label, now, then, text in (
            ("time", self.found.time_us, self.forced.time_us, microseconds),
            ("bytes", self.found.bytes, self.forced.bytes, bytes_text),
            ("memory", self.found.memory_bytes, self.forced.memory_bytes, bytes_text),
        ):
            share = f"{100 * (then - now) / now:+.1f} %" if now else "new" if then else "as before"
            sign = "+" if then >= now else "-"
            lines.append(f"{label:<7} {sign}{text(abs(then - now))}  ({share})")
        if self.follows:
            changes = [f"{n} {algebra.nd_name(a)} → {algebra.nd_name(b)}" for n, a, b in self.follows]
            lines.append(f"would change too: {', '.join(changes[:_MOST])}{_and_more(changes)}")
        for title, moves in (("also moved", self.more), ("no longer moved", self.less)):
            if moves:
                changes = [f"{text}{f' × {count}' * (count > 1)}" for text, count in moves]
                lines.append(f"{title}: {'; '.join(changes[:_MOST])}{_and_more(changes)}")
        return "\n".join(lines)

    __repr__ = __str__


_MOST = 8


def _and_more(changes: list[str]) -> str:
    return f" and {len(changes) - _MOST} more" if len(changes) > _MOST else ""


def sensitivity(problem: PlanningProblem, plan: Plan, name: str, sbp) -> LayoutSensitivity:
    """Return the cost of forcing a tensor into a layout.

    Args:
        problem: the step.
        plan: the plan that was found for it.
        name: an input or a boundary activation as the report names it, or a pattern such as ``h.*.wq``.
        sbp: the nd-sbp, in any form: ``"S0,B"``, a list, or an `sbp` on one axis.
    """
    positions = problem.positions(name)
    here = layouts_of(problem, plan)
    if positions:
        inputs = [problem.inputs[i] for i in positions]
        codes = problem.parse(sbp, inputs[0].tensor_shape)
        forced = problem.plan(_given_codes(problem) | {i: x.input_codes(codes) for i, x in zip(positions, inputs)})
        names = tuple(n for x in inputs for n in x.names)
        before = tuple(x.user_codes(plan.in_codes[i]) for i, x in zip(positions, inputs))
    else:
        every = {a.name: a for a in activations(problem.program)}
        chosen = [every[name]] if name in every else [a for n, a in every.items() if fnmatch.fnmatchcase(n, name)]
        if not chosen:
            raise unknown_name_error(name, [*(x.name for x in problem.inputs), *every], "sensitivity")
        codes = problem.parse(sbp, chosen[0].shape)
        forced = problem.plan(_given_codes(problem), dict.fromkeys(chosen, codes))
        names = tuple(a.name for a in chosen)
        before = tuple(here[n] for n in names if n in here)
    follows = _changed_codes(here, layouts_of(problem, forced), names)
    more, less = _moves(plan, forced)
    return LayoutSensitivity(
        name, names, before, codes, forced, totals(problem, plan, "found"), totals(problem, forced, "forced"),
        follows, more, less,
    )  # fmt: skip


def layouts_of(problem: PlanningProblem, plan: Plan) -> dict[str, Codes]:
    """Return by name the layout of every input and boundary activation in a plan."""
    inputs = [(x, c) for x, c in zip(problem.inputs, plan.in_codes, strict=True) if x.shape]
    found = {n: x.user_codes(c) for x, c in inputs for n in x.names}
    for a in activations(plan.program):
        codes = codes_of(plan, a)
        if codes is not None:
            found[a.name] = codes
    return found


def _given_codes(problem: PlanningProblem) -> dict[int, Codes]:
    return {i: x.own for i, x in enumerate(problem.inputs) if not x.is_free}


def _changed_codes(before: dict, after: dict, names) -> tuple:
    return tuple((n, c, after[n]) for n, c in before.items() if n in after and after[n] != c and n not in names)


def _moves(before: Plan, after: Plan) -> tuple[tuple, tuple]:
    """Return the conversions that only one of two plans has, the largest first."""
    counts = []
    size: dict[str, int] = {}
    for plan in (before, after):
        count: Counter = Counter()
        for b in plan.boxings:
            if b.bytes:
                text = str(b).partition(" at ")[0]
                count[text] += 1
                size[text] = b.bytes
        counts.append(count)
    order = lambda c: tuple(sorted(c.items(), key=lambda item: (-size[item[0]] * item[1], item[0])))  # noqa: E731
    return order(counts[1] - counts[0]), order(counts[0] - counts[1])
