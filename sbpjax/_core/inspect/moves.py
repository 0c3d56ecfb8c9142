"""Conversions of a step, each with its module, its modelled time and its purpose.

    blocks.0.up.weight               S0 → B   weights gathered
    gradient of blocks.0.up.weight   P → B    gradients of weights
    a value read in blocks.0         P → B    tensor parallelism

A value that belongs to a parameter (`sbpjax.graph.program.value_names`) has the parameter's purpose. Any other value is
an activation or its gradient: the module that makes or reads it, and the mesh axis along which it moves, decide. An
axis divides rows of the batch, positions of sequences, weights, or several of these, as the inputs of the step do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from sbpjax._core.jax_private import Var
from sbpjax._core.planner.exact import equation_traffic_bytes
from sbpjax._core.planner.prices.cost import CostModel
from sbpjax._core.programs.normalise import source_line
from sbpjax._core.programs.plan import Plan
from sbpjax._core.programs.primitives import ATTENTION, CONTROL, GROUPED, LOSSES
from sbpjax._core.programs.rules import moved_inside
from sbpjax.graph.program.module_names import Names, Place
from sbpjax.sbp import algebra

from .equal_layers import LoopedLayers
from .plan_table import COLLECTIVES, short_dtype

GRADIENTS, WEIGHTS, UPDATES = "gradients of weights", "weights gathered", "updated weights"
# Activations and their gradients, by the axis along which they move.
TENSOR, BATCH, SEQUENCE, EXPERTS = "tensor parallelism", "batch activations", "sequence", "experts"
OPTIMIZER, LOSS, INPUTS = "optimizer", "loss", "inputs"


@dataclass(frozen=True)
class Move:
    """One conversion of a step.

    Attributes:
        module: the module whose op reads the converted value; an optimizer's name, or ``""``.
        backward: whether that op is part of the backward.
        tensor: dtype and shape.
        sbp: the nd-sbps before and after, or ``inside the op``.
        steps: kind and mesh axis of each collective.
        bytes: the bytes that one device receives in one step.
        times: how often it happens in one step.
        reader: the primitive that wants it.
        line: the user's ``file:line``, or ``""``.
        value: the parameter to which the value belongs: ``gradient of model.up.weight``, or ``""``.
        purpose: the purpose, such as `GRADIENTS`.
        us: the modelled time of its collectives in one step.
        axis_names: the names of the mesh axes.
    """

    module: str
    backward: bool
    tensor: str
    sbp: str
    steps: tuple[tuple[str, int], ...]
    bytes: int
    times: int
    reader: str
    line: str
    value: str = ""
    purpose: str = ""
    us: float = 0.0
    axis_names: tuple[str, ...] = ()

    @property
    def boxing(self) -> str:
        """The tensor and its nd-sbps before and after."""
        return f"{self.tensor} {self.sbp}"

    @property
    def collective(self) -> str:
        """The collectives, with the mesh axis of each."""
        return " + ".join(f"{kind}({self.axis_names[axis]})" for kind, axis in self.steps) or "of its body"

    @property
    def owner_label(self) -> str:
        """The parameter to which the value belongs, or the module that reads it."""
        return self.value or f"{self.module or 'outside modules'}{' backward' * self.backward}"

    @property
    def owner(self) -> str:
        """The parameter, or the module that reads the value."""
        return self.value.rpartition(" of ")[2] or self.module or "outside modules"

    def cells(self) -> tuple[str, ...]:
        """Return it as a row of text."""
        where = f"{self.module or '(none)'}{' backward' * self.backward}"
        line = self.line or self.value
        return where, self.boxing, self.collective, f"{self.bytes:,}", str(self.times), self.reader, line


@dataclass(frozen=True)
class Axis:
    """The parts of a step that one mesh axis divides.

    Attributes:
        size: the number of ranks.
        divides: ``batch``, ``sequence`` and ``weights``, those that it divides.
    """

    size: int
    divides: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.size} ranks split {' and '.join(self.divides) or 'nothing'}"


class Moves:
    """Collects the conversions of a plan.

    Args:
        plan: the plan.
        names: the names of the graph's modules and optimizers.
        prices: the prices of the devices and their links.
        values: value → the parameter to which it belongs.
        axes: the parts of the step that each mesh axis divides.
        axis_names: the names of the mesh axes; by default ``a0``, ``a1``, ….
        layers: the names of layers that run as a loop.
    """

    def __init__(
        self,
        plan: Plan,
        names: Names,
        prices: CostModel,
        values: Mapping[Any, str] = MappingProxyType({}),
        axes: tuple[Axis, ...] = (),
        axis_names: tuple[str, ...] = (),
        layers: LoopedLayers | None = None,
    ) -> None:
        self._layers = layers or LoopedLayers({})
        self._axis_names = axis_names or algebra.axis_names(plan.sizes)
        self._plan, self._names, self._prices, self._values, self._axes = plan, names, prices, values, axes
        self._makers: dict[Var, str] = {}
        self._expert_modules: set[str] = set()
        self._note_modules(plan, "")

    def find_moves(self) -> list[Move]:
        """Return every conversion: those between equations in program order, then those inside equations."""
        return [*self._moves_between_equations(), *self._inside(self._plan, 1, "")]

    def _note_modules(self, plan: Plan, around: str) -> None:
        """Note the module that makes each value, and the modules with products of experts."""
        for i, eqn in enumerate(plan.program.eqns):
            scope = _scope(around, eqn)
            module = self._place(scope).module
            self._makers.update(dict.fromkeys(eqn.outvars, module))
            if eqn.primitive.name in GROUPED and module:
                self._expert_modules.add(module)
            if i in plan.bodies:
                self._note_modules(plan.bodies[i], scope)

    def _place(self, scope: str) -> Place:
        place = self._names.place(scope, with_op=False)
        return place._replace(module=self._layers.name(place.module))

    def _moves_between_equations(self) -> Iterable[Move]:
        for b in self._plan.boxings:
            place = self._place(b.scope)
            axis = max(b.steps, key=lambda s: s.bytes).axis
            value = self._layers.name(self._values.get(b.value, ""))
            # An update that is still a partial sum is the gradient: the optimizer's first op is in the loss's program.
            if algebra.P in b.source and value.startswith("update of "):
                value = value.replace("update", "gradient", 1)
            yield Move(
                place.module, place.backward, f"{short_dtype(b.dtype)}{list(b.shape)}",
                f"{algebra.nd_name(b.source)} → {algebra.nd_name(b.target)}",
                tuple((_kind(s.kind), s.axis) for s in b.steps), b.bytes, b.times, b.reader, b.line, value,
                self._purpose(place.module, self._makers.get(b.value, ""), value, b.reader, b.shape, axis),
                self._prices.collectives_us(b.steps) * b.times, self._axis_names,
            )  # fmt: skip

    def _inside(self, plan: Plan, times: int, around: str) -> Iterable[Move]:
        """Yield the traffic inside equations: a maximum over a split dim, keys sent from rank to rank."""
        for i, eqn in enumerate(plan.program.eqns):
            scope = _scope(around, eqn)
            if i in plan.bodies:
                yield from self._inside(plan.bodies[i], times * eqn.params["length"], scope)
                continue
            count = equation_traffic_bytes(eqn, plan.strategies[i], plan.sizes)
            if count:
                place, aval, name = self._place(scope), eqn.outvars[0].aval, eqn.primitive.name
                moved = [] if name in CONTROL else moved_inside(eqn, plan.strategies[i], plan.sizes)
                axis = moved[0].axis if moved else 0
                yield Move(
                    place.module, place.backward, f"{short_dtype(str(aval.dtype))}{list(aval.shape)}", "inside the op",
                    tuple(dict.fromkeys((_kind(m.kind), m.axis) for m in moved)), count * times, times, name,
                    source_line(eqn), "", self._purpose(place.module, "", "", name, aval.shape, axis),
                    self._prices.interconnect_us(count) * times, self._axis_names,
                )  # fmt: skip

    def _purpose(self, module: str, maker: str, value: str, reader: str, shape: tuple, axis: int) -> str:
        if value == "an argument":
            return INPUTS
        if value:
            kind = value.rpartition(" of ")[0]
            return {"gradient": GRADIENTS, "update": UPDATES, "": WEIGHTS}.get(kind, OPTIMIZER)
        if module in self._names.optimizers:
            return OPTIMIZER
        if reader in LOSSES or not shape or self._names.modules and not module or "loss" in module.lower():
            return LOSS
        if not self._expert_modules.isdisjoint((module, maker)):
            return EXPERTS
        divides = self._axes[axis].divides if self._axes else ()
        if reader in ATTENTION or "sequence" in divides:
            return SEQUENCE
        return BATCH if "batch" in divides else TENSOR


def _scope(around: str, eqn: Any) -> str:
    return f"{around}/{eqn.source_info.name_stack}".strip("/")


def _kind(step: str) -> str:
    return COLLECTIVES.get(step, step)
