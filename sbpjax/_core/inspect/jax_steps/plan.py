"""`plan`: the cheapest shardings of a training step in plain JAX, chosen for all of its values at once.

    plan = sbpjax.auto.plan(train_step, params, opt_state, batch, mesh=mesh)
    step = plan.jit(train_step)                   # called like train_step
    params = jax.jit(init, out_shardings=plan.in_shardings[0])(key)

Alpa planned such programs; `jax.jit` itself only propagates the shardings that it is given.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax

from sbpjax._core.inspect.auto.cost_summary import totals
from sbpjax._core.inspect.auto.sensitivity import LayoutSensitivity, sensitivity
from sbpjax._core.inspect.display import bytes_text, microseconds
from sbpjax._core.inspect.plan_table import Explanation
from sbpjax._core.inspect.traffic import Traffic, traffic
from sbpjax._core.planner.prices.cost import CostModel, preset
from sbpjax._core.planner.prices.links import of_placement
from sbpjax._core.programs.plan import Plan
from sbpjax.errors import ConfigError, OpTypeError, OutOfMemoryError, SbpError
from sbpjax.graph.auto.plan_file import Sharding, load, sharding_of
from sbpjax.graph.auto.planning_problem import PlanningProblem
from sbpjax.graph.auto.rows import unknown_name_error
from sbpjax.sbp import algebra

from .arguments import take_apart, unflatten, update_objects
from .call import LOWERINGS, PlannedStep
from .mesh import MeshAxes
from .report import StepReport
from .step import Step, problem_of, trace_step


def plan(
    step: Callable,
    *args: Any,
    mesh: Any,
    memory: float | None = None,
    pins: Mapping[str, Any] | str | Path | None = None,
    prices: str | CostModel | None = None,
) -> StepPlan:
    """Choose the shardings of a step's arguments, results and intermediate values over a mesh.

    The step is traced, never run; all layouts that are not pinned are chosen together, such that the modelled time is
    least. Arguments that the step returns updated (parameters, optimizer state) come back in the sharding in which they
    came.

    Args:
        step: a function that `jax.jit` could compile, or a jitted one, such as
            ``(params, opt_state, batch) -> (params, opt_state, loss)``; or one that updates NNX objects in place, as
            for `nnx.jit`. It is written for whole arrays; sharding constraints inside have no effect.
        *args: its arguments: pytrees of arrays, of ``jax.ShapeDtypeStruct``, or NNX objects, with or without data.
            Leaves that are no arrays (a bool, a function of an Equinox module) are constants of the plan. Arrays that
            are sharded over the mesh already are "your own" plan of the report.
        mesh: a `jax.sharding.Mesh`, whose axes are all Auto or all Explicit, or a placement. The devices may be absent,
            see `sbpjax.placement.topology`.
        memory: the limit of one device in bytes; None for no limit.
        pins: name or pattern of an argument's leaf, such as ``"params.layers.*.w"``, of a whole argument, or of an
            activation of the report → its layout: a `PartitionSpec`, a `NamedSharding`, or an sbp per mesh axis of more
            than one device. Or a plan file, ``"plan.json"``, that `StepPlan.save` wrote.
        prices: a preset such as ``"h100"``, or a `CostModel`; by default those of the mesh's devices.

    Returns:
        The plan.

    Raises:
        PlacementError: the mesh is none, mixes types of axes, or has manual axes.
        OpTypeError: no argument holds an array.
        DataDependentError: the step reads the value of an array while it is traced.
        SbpError: a pin names no leaf, or its layout does not fit the mesh or the leaf.
        OutOfMemoryError: no plan found keeps to ``memory``.

    Example:
        >>> plan = sbpjax.auto.plan(train_step, params, opt_state, x, y, mesh=jax.make_mesh((8,), ("data",)))
        >>> plan.in_shardings[0]["w"].spec
        PartitionSpec(None, 'data')
    """
    if not callable(step):
        raise OpTypeError(
            "auto.plan(step, ...)",
            f"a {type(step).__name__} in the place of the step",
            "the first argument is a function that jax.jit could compile",
            "auto.plan(train_step, params, opt_state, batch, mesh=mesh)",
        )
    if memory is not None and not (isinstance(memory, (int, float)) and memory > 0):
        rule = "memory is a number of bytes of one device"
        raise ConfigError("auto.plan(..., memory=...)", repr(memory), rule, "memory=80e9")
    axes = MeshAxes(mesh)
    model = of_placement(axes.placement, preset(prices) if isinstance(prices, str) else prices)

    def search(traced: Step) -> StepPlan:
        problem = problem_of(traced, axes, dataclasses.replace(model, hides=True), memory)
        inputs, marks = _pins(pins, problem, axes)
        problem = dataclasses.replace(problem, inputs=_pin_inputs(problem, inputs), marks=marks)
        return StepPlan(traced, axes, problem, problem.plan())

    try:
        return search(trace_step(step, args))
    except OutOfMemoryError:  # perhaps for the casts of all weights, which a loop holds one by one
        return search(trace_step(step, args, hoist=False))


class StepPlan:
    """The plan of a step over a mesh; made by `sbpjax.auto.plan`.

    Attributes:
        mesh: the mesh.
        in_shardings: for every argument its tree of `NamedSharding`, None for leaves that are no arrays; for NNX
            objects the tree of their state.
        out_shardings: the same of the result.
        state_shardings: the same of the new states of NNX arguments.
        donated: the names of the argument leaves whose memory results take over: those that the step returns updated.
        plan: the plan itself: a strategy per equation, and the conversions between them.
    """

    def __init__(self, step: Step, axes: MeshAxes, problem: PlanningProblem, plan: Plan) -> None:
        self._step, self._axes, self._problem = step, axes, problem
        self.mesh, self.plan = axes.mesh, plan
        self._ins = [axes.sharding(c, len(x.shape)) for x, c in zip(problem.inputs, plan.in_codes, strict=True)]
        outs: list[Any] = plan.program.outvars
        shardings = [axes.sharding(c, len(v.aval.shape)) for v, c in zip(outs, plan.out_codes, strict=True)]
        constants = dict.fromkeys(step.constants)
        nothing = dataclasses.replace(step, constants=constants)
        self.in_shardings = step.signature.unflatten(self._ins)
        self.out_shardings, self.state_shardings = nothing.unflatten(shardings)
        self._donated = tuple(sorted(set(step.pairs.values())))
        self.donated = tuple(step.signature.names[i] for i in self._donated)

    @property
    def bytes(self) -> int:
        """Bytes that one device receives over the interconnect in one step."""
        return self.plan.bytes

    @property
    def time_us(self) -> float:
        """The modelled time of one step."""
        return self.plan.modelled_us

    @functools.cached_property
    def report(self) -> StepReport:
        """The plan beside data parallelism, ZeRO-1, FSDP and Megatron's tensor parallelism, each planned likewise."""
        return StepReport(self._problem, self.plan, self._axes)

    def jit(self, step: Callable | None = None, *, lowering: str = "shard_map", donate: bool = True) -> PlannedStep:
        """Return the step as a jitted function that runs by the plan.

        Args:
            step: the planned function; another one is refused, as it has no plan.
            lowering: ``"shard_map"``: every collective as planned. ``"constraints"``: the plan's shardings as
                constraints on values, the collectives left to XLA's partitioner, which has no partial sums and may move
                more.
            donate: whether results take over the memory of the arguments in `donated`, which are deleted.

        Raises:
            ConfigError: an unknown lowering, or constraints on a mesh with Explicit axes.
            OpTypeError: ``step`` is not the planned function.
        """
        if step is not None and step is not self._step.fn:
            raise OpTypeError(
                f"plan.jit({getattr(step, '__name__', step)})",
                "another function than the planned one",
                f"the plan is of the equations of {self._step.signature.title}",
                "auto.plan(step, *args, mesh=mesh) for this function",
            )
        explicit = self._axes.is_explicit
        if lowering not in LOWERINGS or lowering == "constraints" and explicit:
            rule = f"a lowering is one of {list(LOWERINGS)}; constraints need a mesh with Auto axes"
            seen = f"lowering={lowering!r} on a mesh with {'Explicit' if explicit else 'Auto'} axes"
            raise ConfigError("plan.jit(...)", seen, rule, 'lowering="shard_map"')
        return PlannedStep(self._step, self.plan, self._axes, lowering, self._donated if donate else ())

    def put(self, *args: Any) -> tuple:
        """Return arguments divided over the mesh as the plan says; NNX objects are changed in place.

        Raises:
            OpValueError: the arguments have another form than those that were planned for.
        """
        found = take_apart(args)
        self._step.signature.check(found)
        arrays = jax.device_put(found.arrays, self._ins)
        trees = unflatten(found.structure, arrays, found.constants)
        update_objects(found, self._step.signature.states(arrays))
        return tuple(arg if i in self._step.signature.places else trees[i] for i, arg in enumerate(args))

    def traffic(self, lowering: str = "shard_map") -> Traffic:
        """Return the planned collectives beside those of the compiled program; compiles the step."""
        text = self.jit(lowering=lowering).lower().compile().as_text()
        return traffic(self.plan, text, self._axes.placement)

    def explain(self) -> Explanation:
        """Return the plan as tables: the strategy of every equation, and every conversion with its source line."""
        return Explanation(self.plan, self._step.signature.title, self._axes.names)

    def sensitivity(self, name: str, layout: Any) -> LayoutSensitivity:
        """Return the cost of another layout for one tensor, everything else planned anew.

        Args:
            name: an argument's leaf or an activation as the report names it, or a pattern.
            layout: as for ``pins`` of `plan`.

        Raises:
            SbpError: no tensor has that name, or the layout does not fit it.
        """
        inputs, marks = _entry_pins("plan.sensitivity", {name: layout}, self._problem, self._axes)
        codes = next(iter((*inputs.values(), *marks.values())))
        return sensitivity(self._problem, self.plan, name, algebra.to_sbp(codes))

    def save(self, path: str | Path) -> Path:
        """Write the layouts to a plan file: JSON that people can edit, and ``plan(..., pins=path)`` reads.

        Raises:
            SbpError: the file's name does not end in ``.json``.
        """
        return sharding_of(self._problem, self.plan).save(_json(path, "plan.save"))

    def __repr__(self) -> str:
        found = totals(self._problem, self.plan, "found")
        return (
            f"plan of {self._step.signature.title} over {self._axes.title}: {microseconds(found.time_us)}, "
            f"{bytes_text(found.bytes)} in {found.collectives} collectives, {bytes_text(found.memory_bytes)} per device"
        )


# -- pins --------------------------------------------------------------------------------------------------------------


def _pins(pins: Any, problem: PlanningProblem, axes: MeshAxes) -> tuple[dict, dict]:
    """Return the pinned inputs and activations with their codes."""
    if pins is None:
        return {}, {}
    if isinstance(pins, Mapping):
        return _entry_pins("auto.plan(step, ..., pins=...)", pins, problem, axes)
    sharding = pins if isinstance(pins, Sharding) else load(_json(pins, "auto.plan(step, ..., pins=...)"))
    inputs, marks = sharding.pins(problem)
    for i, codes in inputs.items():
        axes.check(problem.inputs[i].name, algebra.nd_name(codes), codes, problem.inputs[i].shape)
    return inputs, marks


def _entry_pins(operation: str, pins: Mapping, problem: PlanningProblem, axes: MeshAxes) -> tuple[dict, dict]:
    inputs: dict = {}
    marks: dict = {}
    every = problem.activations()
    # An exact name counts more than a pattern, and of two patterns the later one.
    for name, layout in sorted(pins.items(), key=lambda entry: any(x.name == entry[0] for x in problem.inputs)):
        found = [i for i, x in enumerate(problem.inputs) if _fits(x.name, name)]
        inputs.update((i, axes.parse(name, layout, problem.inputs[i].shape)) for i in found if problem.inputs[i].shape)
        values = [] if found else [a for a in every.values() if fnmatch.fnmatchcase(a.name, name)]
        marks.update((a, axes.parse(name, layout, a.shape)) for a in values)
        if not found and not values:
            raise unknown_name_error(name, [*(x.name for x in problem.inputs if x.shape), *every], operation)
    return inputs, marks


def _fits(name: str, pattern: str) -> bool:
    """Return whether a leaf has a name, belongs to an argument or subtree of that name, or fits a pattern."""
    return name == pattern or name.startswith(f"{pattern}.") or fnmatch.fnmatchcase(name, pattern)


def _pin_inputs(problem: PlanningProblem, pins: Mapping[int, Any]) -> tuple:
    return tuple(
        dataclasses.replace(x, own=pins[i], is_free=False) if i in pins else x for i, x in enumerate(problem.inputs)
    )


def _json(path: str | Path, operation: str) -> Path:
    path = Path(path)
    if path.suffix != ".json":
        rule = "the plan of a JAX program is JSON: reading one runs no code"
        raise SbpError(f"{operation}: {str(path)!r}", f"the ending {path.suffix!r}", rule, f'"{path.stem}.json"')
    return path
