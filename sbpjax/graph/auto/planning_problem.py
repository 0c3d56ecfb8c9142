"""Planning problem of auto parallelism: a traced step whose inputs have names and kinds.

A step of Adam on ``w`` of shape ``(64, 256)`` has the inputs

    w    parameter           S1      free: the planner may choose
    m    state of w          S1      free
    v    state of w          S1      free
    x    batch               S0      free
    lr   number              B       given

A `PlanningProblem` holds the flat program, a description of each input, and the prices; every plan is made by
`PlanningProblem.plan`, with some inputs pinned and the others left to the planner. Reports, baselines, sensitivity
questions ("the cost of another layout"), and plan files are all a choice of those pins.
"""

from __future__ import annotations

import dataclasses
import fnmatch
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax

from sbpjax._core.compiler.compile import cached_plan
from sbpjax._core.jax_private import Var
from sbpjax._core.planner.boundaries import Activation, activations
from sbpjax._core.planner.pins import pin_values
from sbpjax._core.planner.prices.cost import DEFAULT, CostModel
from sbpjax._core.programs.normalise import Program, normalise
from sbpjax._core.programs.plan import Codes, Plan
from sbpjax.errors import SbpError
from sbpjax.sbp import algebra
from sbpjax.sbp.algebra import B
from sbpjax.sbp.layout import layout_of
from sbpjax.sbp.placement import placement as Placement

PARAMETER, STATE, BUFFER, BATCH, NUMBER = "parameter", "state", "buffer", "batch", "number"


@dataclass(frozen=True)
class Input:
    """One input of a step.

    Attributes:
        name: the user's name for it.
        kind: ``parameter``, ``state`` (of an optimizer), ``buffer``, ``batch``, or ``number`` (a scalar, a seed).
        shape: the logical shape.
        dtype: the dtype.
        own: the user's layout.
        parent: of a state, the position of its parameter.
        is_free: whether the planner may choose its layout.
        members: of a stack of equal layers' tensors along dim 0, the names of each of them.
    """

    name: str
    kind: str
    shape: tuple[int, ...]
    dtype: Any
    own: Codes
    parent: int | None = None
    is_free: bool = True
    members: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The user's name for it, or those of every tensor of a stack."""
        return self.members or (self.name,)

    @property
    def tensor_shape(self) -> tuple[int, ...]:
        """The shape that the user knows: of a stack, that of one tensor."""
        return self.shape[1:] if self.members else self.shape

    def user_codes(self, codes: Codes) -> Codes:
        """Return the nd-sbp of the user's tensor from that of the input."""
        return algebra.shift_splits(codes, -1) if self.members else codes

    def input_codes(self, codes: Codes) -> Codes:
        """Return the nd-sbp of the input from that of the user's tensor."""
        return algebra.shift_splits(codes, 1) if self.members else codes


@dataclass(frozen=True)
class PlanningProblem:
    """A traced step, with descriptions of its inputs and the prices by which it is planned.

    Attributes:
        program: the flat program.
        placement: where it runs.
        inputs: one entry per input of the program.
        out_pins: as for `_core.planner.plan_program`; an updated parameter names the position of its input.
        cost: the prices.
        memory_bytes: the limit of one device; None for no limit.
        title: its title.
        marks: boundary activations that the user laid, with their nd-sbps.
        even: whether inputs and results divide evenly, as `jax.jit` requires of shardings.
        updates: the name scopes of the update of parameters and optimizer state.
        planner: ``(program, sizes, in_codes, out_pins, free_inputs, cost, memory_bytes, whole_dims,
            device, even) -> Plan``.
    """

    program: Program
    placement: Placement
    inputs: tuple[Input, ...]
    out_pins: tuple
    cost: CostModel = DEFAULT
    memory_bytes: float | None = None
    title: str = "step"
    marks: Mapping[Activation, Codes] = dataclasses.field(default_factory=dict, repr=False, compare=False)
    even: bool = False
    updates: frozenset[str] = frozenset()
    planner: Callable[..., Plan] = dataclasses.field(default=cached_plan, repr=False, compare=False)

    @property
    def sizes(self) -> Codes:
        """The placement's hierarchy."""
        return tuple(int(n) for n in self.placement.hierarchy)

    @property
    def everywhere(self) -> Codes:
        """The all-broadcast nd-sbp."""
        return (B,) * len(self.sizes)

    @property
    def free(self) -> tuple[int, ...]:
        """The positions of the inputs whose layout the planner may choose."""
        return tuple(i for i, x in enumerate(self.inputs) if x.is_free)

    def own_pins(self) -> dict[int, Codes]:
        """Return the user's layout of every input."""
        return {i: x.own for i, x in enumerate(self.inputs)}

    def activations(self) -> dict[str, Activation]:
        """Return by name the values that go from one module to another; see `_core.planner.boundaries`."""
        return {a.name: a for a in activations(self.program)}

    def plan(
        self,
        pins: Mapping[int, Codes] | None = None,
        marks: Mapping[Activation, Codes] | None = None,
        *,
        constrained: bool = True,
    ) -> Plan:
        """Return the cheapest plan found with some layouts given.

        Args:
            pins: position of an input → its nd-sbp; free inputs that are not named are the planner's to choose.
            marks: boundary activation → its nd-sbp.
            constrained: whether the subject's limit of memory and its pinned activations count.
        """
        pins = dict(pins or {})
        codes = tuple(pins.get(i, x.own) for i, x in enumerate(self.inputs))
        free = tuple(i for i in self.free if i not in pins)
        marks = {**(self.marks if constrained else {}), **(marks or {})}
        program = pin_values(self.program, marks, self.placement) if marks else self.program
        limit = self.memory_bytes if constrained else None
        # A stack is not split along its layers: an iteration of the loop would have its slice on one rank.
        whole = {i: (0,) for i in free if self.inputs[i].members}
        where = self.placement.type
        return self.planner(program, self.sizes, codes, self.out_pins, free, self.cost, limit, whole, where, self.even)

    def positions(self, pattern: str) -> list[int]:
        """Return the positions of the inputs of a name, or of a pattern such as ``blocks.*.up.weight``."""
        exact = [i for i, x in enumerate(self.inputs) if pattern in (x.name, *x.members)]
        return exact or [i for i, x in enumerate(self.inputs) if any(fnmatch.fnmatchcase(n, pattern) for n in x.names)]

    def parse(self, sbp, shape: Sequence[int]) -> Codes:
        """Return the codes of an nd-sbp in any form, for a tensor of a shape."""
        return algebra.parse(sbp, self.placement, len(shape))

    def layouts(self, plan: Plan) -> list:
        """Return the layouts of the inputs under a plan."""
        return [layout_of(self.placement, c, x.shape, x.dtype) for c, x in zip(plan.in_codes, self.inputs, strict=True)]


def planning_problem_of(
    fn: Callable,
    avals: Sequence,
    placement: Placement,
    *,
    names: Sequence[str] | None = None,
    kinds: Sequence[str] | None = None,
    own: Sequence | None = None,
    returned: int = 0,
    cost: CostModel = DEFAULT,
    memory_bytes: float | None = None,
    title: str = "step",
) -> PlanningProblem:
    """Return the subject of a step written in JAX: ``step(*leaves) -> (*new_state, *results)``.

    Args:
        fn: the step, over logical arrays.
        avals: shape and dtype of every leaf.
        placement: where it runs.
        names: the name of each leaf; ``x0``, ``x1``… by default.
        kinds: the kind of each leaf, see `Input`. By default the first ``returned`` leaves are parameters, the others
            the batch; a state belongs to the parameter whose name ends like its own.
        own: the user's layout of each leaf, in any form; broadcast by default.
        returned: how many leaves are state that the step returns first, in the same order and layout.
        cost: the prices.
        memory_bytes: the limit of one device; None for no limit.
        title: the title of the step.

    Raises:
        SbpError: ``names``, ``kinds`` or ``own`` do not have one entry per leaf.
    """
    count = len(avals)
    names = list(names or [f"x{i}" for i in range(count)])
    kinds = list(kinds or [PARAMETER if i < returned else BATCH for i in range(count)])
    layouts = list(own or ["B," * (len(placement.hierarchy) - 1) + "B"] * count)
    for label, given in (("names", names), ("kinds", kinds), ("own", layouts)):
        if len(given) != count:
            raise SbpError(
                f"planning_problem_of({label}=...)",
                f"{len(given)} {label} for {count} leaves",
                "there is one per leaf of the step",
                f"give {count}",
            )
    kinds = [NUMBER if not a.shape else k for k, a in zip(kinds, avals)]
    tails = {_strip_collection(n): i for i, (n, k) in enumerate(zip(names, kinds)) if k == PARAMETER}
    everywhere = (B,) * len(placement.hierarchy)
    inputs = tuple(
        Input(
            name, kind, tuple(a.shape), a.dtype,
            algebra.parse(sbp, placement, len(a.shape)) if a.shape else everywhere,
            tails.get(_strip_collection(name)) if kind == STATE else None,
            bool(a.shape),
        )
        for name, kind, a, sbp in zip(names, kinds, avals, layouts)
    )  # fmt: skip
    program = normalise(jax.make_jaxpr(fn)(*avals))
    rest = len(program.outvars) - returned
    # State is returned in its input layout, and numbers are whole; the planner chooses the layouts of other results.
    pins = (*range(returned), *(everywhere if not _shape(v) else None for v in program.outvars[returned:]))
    if rest < 0:
        raise SbpError(
            f"planning_problem_of(returned={returned})",
            f"a step of {len(program.outvars)} results",
            "the first results are the new state, one per leaf of it",
            f"returned={len(program.outvars)} at most",
        )
    return PlanningProblem(program, placement, inputs, pins, cost, memory_bytes, title)


def _strip_collection(name: str) -> str:
    """Return a leaf's name without its collection: ``h0.wq`` of ``p.h0.wq`` and of ``m.h0.wq``."""
    return name.partition(".")[2] or name


def _shape(v) -> tuple:
    aval: Any = v.aval
    return tuple(aval.shape) if isinstance(v, Var) else ()
