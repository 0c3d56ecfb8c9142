"""A step of plain JAX as a planning problem: traced on whole arrays, its inputs named, its state found."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax

from sbpjax._core.jax_private import Literal
from sbpjax._core.planner.prices.cost import CostModel
from sbpjax._core.programs.casts import hoist_from_loops
from sbpjax._core.programs.normalise import Program, normalise
from sbpjax._core.runtime.ambient_mesh import hide_mesh
from sbpjax.errors import DataDependentError, OpNotSupportedError, OpValueError
from sbpjax.graph.auto.planning_problem import Input, PlanningProblem

from .arguments import Signature, flatten, unflatten
from .mesh import MeshAxes
from .state import kinds_of, pair_state


@dataclass(frozen=True)
class Step:
    """A traced step.

    Attributes:
        fn: the user's function.
        signature: its arguments.
        program: the flat program, from array leaves to array leaves.
        result: the tree of results, with the positions of outputs as leaves and None for constants.
        states: the trees of the new states of NNX arguments, likewise.
        constants: the leaves of results that are no arrays, in the place of outputs.
        pairs: output → the input whose new value it is.
    """

    fn: Callable
    signature: Signature
    program: Program
    result: Any
    states: tuple
    structure: Any
    constants: dict[int, Any]
    pairs: dict[int, int]

    def unflatten(self, values: Sequence) -> tuple[Any, tuple]:
        """Return the result and the states of NNX arguments from the outputs of the program."""
        return unflatten(self.structure, values, self.constants)


def trace_step(fn: Callable, args: Sequence, hoist: bool = True) -> Step:
    """Return a step traced with arguments of these shapes.

    ``hoist``: whether its loops take narrowed weights, so that they can be gathered once for all iterations.
    """
    signature = Signature(fn, args)
    found: dict[str, Any] = {}

    def flat(*arrays):
        outs, found["constants"], found["structure"] = flatten(signature.call(fn, arrays))
        return outs

    try:
        program = hide_mesh(_trace)(flat, signature.avals, hoist)
    except (jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError) as error:
        rule = "a step is traced as in jax.jit: which of its branches runs must not depend on values of arrays"
        fix = "jnp.where, jax.lax.cond, jax.lax.while_loop; an option of the step belongs into functools.partial"
        raise DataDependentError(f"auto.plan({signature.title}, ...)", _first_line(error), rule, fix) from error
    _check_primitives(signature.title, program)
    whole = Step(fn, signature, program, None, (), **found, pairs={})
    result, states = whole.unflatten(range(len(program.outvars)))
    trees = signature.unflatten(range(len(signature.avals)))
    # The states of NNX arguments come back in their own places; the rest of the result is searched for new values.
    own = _pair_states(states, signature, program)
    pairs = {**pair_state(trees, result, signature.avals, program), **own}
    return dataclasses.replace(whole, result=result, states=states, pairs=pairs)


def _trace(flat: Callable, avals: Sequence, hoist: bool) -> Program:
    program = normalise(jax.make_jaxpr(flat)(*avals))
    return hoist_from_loops(program) if hoist else program


def _pair_states(states: Any, signature: Signature, program: Program) -> dict[int, int]:
    given = signature.states(range(len(signature.avals)))
    pairs = dict(zip(jax.tree.leaves(states), jax.tree.leaves(given), strict=False))
    outs: list[Any] = program.outvars
    alike = jax.tree.structure(states) == jax.tree.structure(given)
    if not alike or any(outs[o].aval.shape != signature.avals[i].shape for o, i in pairs.items()):
        raise OpValueError(
            f"auto.plan({signature.title}, ...)",
            "a step that adds, drops or reshapes a variable",
            "the state of its NNX arguments has the same form after a step as before",
            "make all variables before, e.g. by one call of the step under nnx.eval_shape",
        )
    return pairs


def _check_primitives(title: str, program: Program) -> None:
    for eqn in program.eqns:
        if eqn.primitive.name in ("shard_map", "xla_pmap"):
            raise OpNotSupportedError(
                f"auto.plan({title}, ...)",
                f"a {eqn.primitive.name} inside",
                "the planner divides a step that is written for whole arrays",
                "plan the step without it, and use plan.out_shardings where it is called",
            )


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def problem_of(step: Step, axes: MeshAxes, cost: CostModel, memory_bytes: float | None) -> PlanningProblem:
    """Return the planning problem of a step on a mesh; the shardings of its arguments are the user's own layouts."""
    signature = step.signature
    kinds = kinds_of(signature.names, signature.avals, step.pairs, step.program)
    inputs = []
    for name, aval, sharding, (kind, parent) in zip(
        signature.names, signature.avals, signature.shardings, kinds, strict=True
    ):
        own = axes.own_codes(sharding, aval.shape) or axes.whole
        is_free = bool(aval.shape) and not _is_key(aval)
        inputs.append(Input(name, kind, tuple(aval.shape), aval.dtype, own, parent, is_free))
    pins = tuple(_out_pin(o, v, step.pairs, axes) for o, v in enumerate(step.program.outvars))
    return PlanningProblem(
        step.program, axes.placement, tuple(inputs), pins, cost, memory_bytes, signature.title, even=True
    )


def _is_key(aval: Any) -> bool:
    return jax.dtypes.issubdtype(aval.dtype, jax.dtypes.prng_key)


def _out_pin(o: int, v: Any, pairs: Mapping[int, int], axes: MeshAxes) -> Any:
    if o in pairs:
        return pairs[o]
    # A number is whole, and random keys are few; the planner chooses the layouts of other results.
    return axes.whole if isinstance(v, Literal) or not v.aval.shape or _is_key(v.aval) else None
