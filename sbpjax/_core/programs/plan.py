"""Sharding plans: for every equation of a program the layouts of its operands and results."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from sbpjax._core.jax_private import Var
from sbpjax.sbp import algebra, boxing
from sbpjax.sbp.conversion_steps import Step

from .normalise import Program, source_line
from .rules import Strategy

Codes = tuple[int, ...]
# Slower by less than this is noise of the solver.
_HELD_BACK = 1e-3


@dataclass(frozen=True)
class Boxing:
    """One conversion of a plan.

    Attributes:
        line: the user's ``file:line``.
        reader: the primitive that wants the converted value, or ``output``.
        shape: the logical shape.
        dtype: the dtype's name.
        source: codes before.
        target: codes after.
        steps: the single-axis steps.
        times: its count in one run of the program: the iterations of the loops around it.
        scope: the names around its reader, such as ``model/0/transpose(jvp())``.
        value: the variable that is converted.
    """

    line: str
    reader: str
    shape: tuple[int, ...]
    dtype: str
    source: Codes
    target: Codes
    steps: tuple[Step, ...]
    times: int = 1
    scope: str = ""
    value: Any = field(default=None, compare=False, repr=False)

    @property
    def bytes(self) -> int:
        """The bytes that one device receives over the interconnect in one run of the program."""
        return sum(s.bytes for s in self.steps) * self.times

    def __str__(self) -> str:
        kinds = " + ".join(s.kind for s in self.steps) + (f" × {self.times}" if self.times > 1 else "")
        where = f" at {self.line}" if self.line else ""
        return (
            f"{self.dtype}{list(self.shape)} {algebra.nd_name(self.source)} → {algebra.nd_name(self.target)} "
            f"({kinds}, {self.bytes} B) for {self.reader}{where}"
        )


@dataclass
class Plan:
    """A program with its layouts chosen.

    Attributes:
        program: the flat program.
        sizes: the placement's hierarchy.
        in_codes: the nd-sbp of every input.
        strategies: for every equation a strategy per axis.
        out_codes: the nd-sbp of every output.
        inner_bytes: bytes that equations move inside themselves (hidden collectives, bodies planned on their own).
        gap: the relative distance of the plan from the planner's lower bound; 0 is proven on each axis given the
            others.
        modelled_us: the modelled time of one run; 0 if the planner went by bytes.
        bodies: the plans of the bodies of loops that were planned with the program, by equation.
        unlimited_us: under a limit of memory, the modelled time of the plan that would be taken without it; else 0.
    """

    program: Program
    sizes: tuple[int, ...]
    in_codes: tuple[Codes, ...]
    strategies: list[tuple[Strategy, ...]]
    out_codes: tuple[Codes, ...]
    inner_bytes: int = 0
    gap: float = 0.0
    modelled_us: float = 0.0
    bodies: dict[int, Plan] = field(default_factory=dict)
    unlimited_us: float = 0.0
    _boxings: list[Boxing] | None = field(default=None, repr=False)

    def ins(self, i: int) -> tuple[Codes, ...]:
        """Return the nd-sbp that equation ``i`` wants of each operand."""
        return tuple(zip(*(strategy.ins for strategy in self.strategies[i]), strict=True))

    def outs(self, i: int) -> tuple[Codes, ...]:
        """Return the nd-sbp that equation ``i`` gives to each output."""
        return tuple(zip(*(strategy.outs for strategy in self.strategies[i]), strict=True))

    @property
    def boxings(self) -> list[Boxing]:
        """Every conversion, in program order."""
        if self._boxings is None:
            self._boxings = list(_boxings(self))
        return self._boxings

    @property
    def bytes(self) -> int:
        """The bytes that one device receives over the interconnect in one run of the program."""
        return sum(b.bytes for b in self.boxings) + self.inner_bytes

    @property
    def is_held_back(self) -> bool:
        """Whether a limit of memory makes the plan slower than it would be without."""
        return 0.0 < self.unlimited_us < self.modelled_us * (1 - _HELD_BACK)


class Copies:
    """The layouts in which each value exists; a reader takes the copy that is cheapest to convert.

    The planner, the lowering and the listing of boxings all use this class, so that they agree on every transfer.
    """

    def __init__(self, sizes: Codes) -> None:
        self.sizes = sizes
        self.known: dict = {}

    def put(self, variable: Var, codes: Codes, value=None) -> None:
        """Record that a value was produced under ``codes``."""
        self.known[variable] = {codes: value}

    def source(self, variable: Var, target: Codes) -> Codes:
        """Return the copy from which ``target`` is cheapest."""
        copies = self.known[variable]
        if target in copies:
            return target
        aval: Any = variable.aval
        # A tie goes to the copy that was made first, in planner and lowering alike.
        return min(copies, key=lambda c: boxing.cost(aval.shape, aval.dtype.itemsize, self.sizes, c, target))

    def drop(self, variable: Var) -> None:
        """Forget a value that nothing reads any more."""
        self.known.pop(variable, None)


def _boxings(plan: Plan):
    copies = Copies(plan.sizes)
    everywhere = (algebra.B,) * len(plan.sizes)
    for variable, codes in zip(plan.program.invars, plan.in_codes, strict=True):
        copies.put(variable, codes)
    for variable in plan.program.consts:
        # Constants are part of the program's text, the same on every rank.
        copies.put(variable, everywhere)
    for i, eqn in enumerate(plan.program.eqns):
        for variable, target in zip(eqn.invars, plan.ins(i), strict=True):
            yield from _boxing_for_read(copies, variable, target, eqn.primitive.name, eqn)
        if i in plan.bodies:
            iterations, around = eqn.params["length"], str(eqn.source_info.name_stack)
            for b in plan.bodies[i].boxings:
                yield replace(b, times=b.times * iterations, scope=f"{around}/{b.scope}".strip("/"))
        for variable, codes in zip(eqn.outvars, plan.outs(i), strict=True):
            copies.put(variable, codes)
    for variable, target in zip(plan.program.outvars, plan.out_codes, strict=True):
        yield from _boxing_for_read(copies, variable, target, "output", None)


def _boxing_for_read(copies: Copies, variable, target: Codes, reader: str, eqn):
    if not isinstance(variable, Var):
        return
    source = copies.source(variable, target)
    if source == target:
        return
    aval: Any = variable.aval
    steps = boxing.path(aval.shape, aval.dtype.itemsize, copies.sizes, source, target)
    # The copy stays: later readers of this layout move nothing.
    copies.known[variable][target] = None
    line, scope = ("", "") if eqn is None else (source_line(eqn), str(eqn.source_info.name_stack))
    yield Boxing(line, reader, aval.shape, str(aval.dtype), source, target, steps, scope=scope, value=variable)
