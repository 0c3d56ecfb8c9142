"""`Graph.explain`: the traffic of a step by purpose, by conversion, and beside the compiled program's.

    module            boxing              collective           bytes   times  for          line
    model.3           f32[64,256] S0 → B  all_gather(a0)      49,152       1  dot_general  train.py:31
    model.0 backward  f32[256,64] P → B   all_reduce(a0)      98,304       1  mul          train.py:33
    Adam              f32[64] P → S0      reduce_scatter(a0)     224       1  square       gradient of model.1.bias

This is the table of level 2; `step_summary` has level 1. A conversion has the bytes that one device receives over the
interconnect; in a loop it happens once per iteration. Some equations move bytes inside themselves (a maximum over a
split dim): they are listed too, so that the sum of the table is the plan's. The last part is the same sum per kind,
beside the compiled program's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from sbpjax._core.planner.prices.cost import DEFAULT
from sbpjax._core.planner.prices.links import of_placement
from sbpjax._core.planner.prices.step_time import computing_us
from sbpjax._core.tracing.capture import State
from sbpjax.errors import MixedTensorError
from sbpjax.graph.auto.planning_problem import BATCH, PARAMETER, PlanningProblem
from sbpjax.graph.fitting import owners_of
from sbpjax.graph.program.module_names import Names
from sbpjax.graph.program.value_names import value_names

from .auto.graph_views import problem_of_program
from .display import Table
from .equal_layers import LoopedLayers, fold_layers
from .moves import Axis, Move, Moves
from .plan_table import Explanation
from .step_page import page
from .step_summary import remarks, summary
from .traffic import Traffic, planned_launches, traffic_of

_HEAD = ("module", "boxing", "collective", "bytes", "times", "for", "line")


@dataclass(frozen=True)
class Purpose:
    """All conversions of one purpose.

    Attributes:
        name: the purpose.
        bytes: the bytes that one device receives in one step.
        us: their modelled time.
        times: the number of conversions.
        collectives: ``"all_gather(a1)"`` and its like → bytes, the largest first.
        places: weights or modules → bytes, equal layers in one name, the largest first.
    """

    name: str
    bytes: int
    us: float
    times: int
    collectives: dict[str, int]
    places: dict[str, int]


class Communication(Explanation):
    """The traffic of a step of a graph.

    Attributes:
        moves: every conversion, in program order; those without a byte on the interconnect too.
        traffic: the sums per kind, planned and compiled; None if the program was not compiled.
        platform: the kind of devices.
        launches: how many collectives a step launches by kind, those counted once that the compiler combines.
        axes: the parts of the step that each mesh axis divides.
        problem: the step: its inputs with their names and layouts.
        prices: the prices by which times are modelled.
        computing_us: the modelled time of a step without its collectives.
        planned_us: the time that the planner minimised, if it chose by these prices: hidden latency counts less there,
            and on TPUs HBM traffic counts too; else None.
        level: 1 for a summary by purpose, 2 for the table of conversions.
        graph: the graph, with the names of its modules and optimizers in `names`.
        layers: the names of layers that run as a loop.
    """

    def __init__(self, graph: Any, program: Any, check: bool, level: int = 1) -> None:
        if program.plan is None:
            raise MixedTensorError(
                f"{graph.name}.explain(...)",
                "no global tensor among the arguments and the state",
                "a program on one device moves nothing between devices",
                "x.to_global(placement, sbp)",
            )
        super().__init__(program.plan, graph.name, program.placement.axis_names)
        state = State(owners_of(graph))
        cost, plan = program.options.cost, program.plan
        # Without auto parallelism the planner goes by the default, whatever the devices are.
        prices, self.planned_us = (
            (of_placement(program.placement), None) if cost is DEFAULT else (cost, plan.modelled_us)
        )
        self.problem = problem_of_program(graph, state, program)
        self.axes = _axes(self.problem, program.plan)
        values = value_names(program.plan, program, state)
        self.graph, self.names = graph, Names(graph)
        # Of a graph with one module, names begin in it: `blocks.0.up`, not `model.blocks.0.up`; but not with a number.
        root = self.names.roots[0] if len(self.names.roots) == 1 else ""
        self._root = "" if f"{root}.0" in self.names.modules else f"{root}."
        self.layers = LoopedLayers({x.name: x.members for x in self.problem.inputs if x.members})
        moves = Moves(program.plan, self.names, prices, values, self.axes, self.axis_names, self.layers)
        self.moves = moves.find_moves()
        self.traffic: Traffic | None = traffic_of(program) if check else None
        self.platform = program.placement.type
        self.launches = planned_launches(program.plan, program.placement)
        self.prices, self.computing_us = prices, computing_us(program.plan, prices)
        self.level = level

    @property
    def time_us(self) -> float:
        """The modelled time of a step: computing and moving, one after the other."""
        return self.computing_us + sum(move.us for move in self.moves)

    def shorten(self, name: str) -> str:
        """Return the name of a module or of a parameter's value without that of the graph's only module."""
        kind, of, path = name.rpartition(" of ")
        return kind + of + path.removeprefix(self._root)

    def by_module(self) -> dict[str, int]:
        """Return bytes per step by module, the largest first; ``""`` is for values of no module."""
        return _largest_first((move.module, move.bytes) for move in self.moves)

    def by_purpose(self) -> list[Purpose]:
        """Return the purposes of a step, the largest first."""
        return purposes_of(self.moves)

    def to_dict(self) -> dict:
        """Return the report for programs: figures, purposes, conversions, remarks."""
        return {
            "title": self.title, "ranks": list(self.plan.sizes), "bytes": self.bytes, "prices": self.prices.name,
            "time_us": self.time_us, "computing_us": self.computing_us, "collectives": self.launches,
            "axes": [asdict(axis) for axis in self.axes],
            "purposes": [asdict(purpose) for purpose in self.by_purpose()],
            "conversions": [asdict(move) for move in self.moves],
            "remarks": [*remarks(self), *self.losses(), *self.kernels(self.platform)],
            "compiled": None if self.traffic is None else self.traffic.compiled,
        }  # fmt: skip

    def to_html(self) -> str:
        """Return a page that needs no other file: purposes, a time line, conversions and memory by layer."""
        return page(self)

    def _blocks(self) -> Iterable[Any]:
        return self._table() if self.level > 1 else summary(self)

    def _table(self) -> Iterable[Any]:
        moving = [move for move in self.moves if move.bytes]
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(self.launches.items()))
        yield f"{self._summary()}; collectives: {kinds or 'none'}"
        yield from self.losses()
        yield from self.kernels(self.platform)
        if moving:
            yield Table([move.cells() for move in _fold_layer_moves(moving)], _HEAD, right=(3, 4))
        free = len(self.moves) - len(moving)
        if free:
            yield f"{free} more conversion{'s' * (free != 1)} without a byte on the interconnect"
        if self.traffic is not None:
            yield str(self.traffic)


def _fold_layer_moves(moves: Sequence[Move]) -> Iterable[Move]:
    """Yield one row for equal layers, by the module's name and that of the value."""
    rows = [(f"{move.module} \0 {move.value}", replace(move, module="", value="")) for move in moves]
    for name, move, count in fold_layers(rows):
        module, value = name.split(" \0 ")
        yield replace(move, module=module, value=value, bytes=move.bytes * count, times=move.times * count)


def purposes_of(moves: Iterable[Move]) -> list[Purpose]:
    """Return the purposes of conversions, the largest first."""
    found: dict[str, list[Move]] = {}
    for move in moves:
        if move.bytes:
            found.setdefault(move.purpose, []).append(move)
    return sorted((_purpose(name, group) for name, group in found.items()), key=lambda p: -p.bytes)


def _purpose(name: str, moves: Sequence[Move]) -> Purpose:
    """Return the sums of conversions of one purpose, by collective and by weight or module."""
    kinds = ((one, move.bytes) for move in moves for one in move.collective.split(" + "))
    sizes = _largest_first((move.owner, move.bytes) for move in moves)
    return Purpose(
        name,
        bytes=sum(move.bytes for move in moves),
        us=sum(move.us for move in moves),
        times=sum(move.times for move in moves),
        collectives=_largest_first((kind, size) for kind, size in kinds if not kind.startswith("slice")),
        places=_largest_first((place, size * layers) for place, size, layers in fold_layers(list(sizes.items()))),
    )


def _axes(problem: PlanningProblem, plan: Any) -> tuple[Axis, ...]:
    """Return the parts of a step that each mesh axis divides, by the layouts of its inputs."""
    found = []
    for axis, size in enumerate(plan.sizes):
        codes = [(x.kind, x.user_codes(c)[axis]) for x, c in zip(problem.inputs, plan.in_codes, strict=True) if x.shape]
        divides = {
            "batch": any(kind == BATCH and code == 0 for kind, code in codes),
            "sequence": any(kind == BATCH and code > 0 for kind, code in codes),
            "weights": any(kind == PARAMETER and code >= 0 for kind, code in codes),
        }
        found.append(Axis(size, tuple(name for name, is_divided in divides.items() if is_divided)))
    return tuple(found)


def _largest_first(sizes: Iterable[tuple[str, int]]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for name, size in sizes:
        found[name] += size
    return dict(found.most_common())
