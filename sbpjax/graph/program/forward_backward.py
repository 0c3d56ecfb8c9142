"""Forward/backward partition: one trace of a block becomes two programs.

A block is traced once on its inputs and on *cotangents* of its outputs in place of those arriving in backward. The
equations that read no cotangent are the forward; their values that the others read are saved between the two:

    forward   inputs → outputs, saved
    backward  inputs, saved, cotangents → gradients of the inputs

The saved values follow a *policy*, as in `jax.checkpoint_policies`: None saves the fewest bytes from which pointwise
work gives the inputs of backward (`_core.programs.min_cut`), ``"nothing"`` none, so that backward computes the forward
again behind a barrier, and a function of ``(primitive, *avals, **params)`` decides per equation. Values that
depend on no input (masks, ``iota``) and inputs that were only turned or cast (a transposed weight) are computed where
they are read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax

from sbpjax._core.jax_private import DropVar, Literal, Primitive, Var
from sbpjax._core.programs.min_cut import least_saved
from sbpjax._core.programs.normalise import Program, evaluate, normalise
from sbpjax._core.programs.primitives import MOVES
from sbpjax._core.runtime.ambient_mesh import jit_without_mesh

# Placeholder for the gradient of an output while a block is traced.
cotangent_p = Primitive("cotangent")

# Primitives that give the elements of one operand again, in another order, shape or precision.
COPIES = MOVES | {"convert_element_type", "to_sbp"}

# Policies by name: the values that a checkpointed module keeps for its backward.
POLICIES: dict[str, Any] = {
    "nothing": "nothing",
    "everything": None,
    "dots": jax.checkpoint_policies.dots_saveable,
    "dots_with_no_batch_dims": jax.checkpoint_policies.dots_with_no_batch_dims_saveable,
    "offload_dots": jax.checkpoint_policies.offload_dot_with_no_batch_dims("device", "pinned_host"),
}


@cotangent_p.def_abstract_eval
def _cotangent_aval(*, shape, dtype):
    return jax.core.ShapedArray(shape, dtype)


@dataclass(frozen=True)
class ForwardBackward:
    """The two programs of a block.

    Attributes:
        forward: ``(*inputs) -> (*outputs, *saved)``.
        backward: ``(*inputs, *saved, *cotangents) -> gradients``; None if no gradient is wanted.
        outputs: how many outputs there are.
    """

    forward: Callable
    backward: Callable | None
    outputs: int


def split(name: str, closed, outputs: int, policy=None, again: bool = False) -> ForwardBackward:
    """Return forward and backward of a traced block.

    Args:
        name: the name of the programs.
        closed: the jaxpr of inputs → outputs, gradients, with a ``cotangent`` equation per differentiable output.
        outputs: how many of its results are outputs.
        policy: the values to save.
        again: hold XLA to the saved values. It merges the recomputation in a backward with its forward's, and so stores
            a gelu's float32 ``tanh`` beside its bfloat16 input. An accelerator computes it faster than it reads it; on
            a CPU it is slow.
    """
    program = normalise(closed)
    outs, grads = program.outvars[:outputs], program.outvars[outputs:]
    cotangents, late = [], set()
    early_eqns, late_eqns = [], []
    fixed = set(program.consts)  # values that depend on no input
    # Inputs, and values made of one by moving its elements.
    turned = set(program.invars)
    for eqn in program.eqns:
        reads = [v for v in eqn.invars if isinstance(v, Var)]
        if eqn.primitive is cotangent_p:
            cotangents += eqn.outvars
            late.update(eqn.outvars)
        elif any(v in late for v in reads):
            late.update(eqn.outvars)
            late_eqns.append(eqn)
        else:
            early_eqns.append(eqn)
            cheap = eqn.primitive.name in COPIES and all(v in fixed or v in turned for v in reads)
            if all(v in fixed for v in reads) and not eqn.effects:
                fixed.update(eqn.outvars)
            elif cheap:
                turned.update(eqn.outvars)
    wanted = _reads(late_eqns, grads) - late
    away: set = set()  # values that wait in the host's memory
    if not grads:
        saved, repeated = [], []
    elif policy is None:
        kept = least_saved(early_eqns, wanted, fixed | turned)
        repeated = _needed_equations(early_eqns, wanted, stop=kept)
        saved = [v for v in _output_variables(early_eqns) if v in kept]
    else:
        kept, away = (set(), set()) if policy == "nothing" else _apply_policy(early_eqns, policy)
        kept -= fixed
        repeated = _needed_equations(early_eqns, wanted, stop=kept)
        # A policy names values by their equations, also such as no backward reads.
        need = wanted | _reads(repeated, [])
        saved = [v for v in _output_variables(early_eqns) if v in kept and v in need]
    first = _needed_equations(early_eqns, {v for v in (*outs, *saved) if isinstance(v, Var)})
    forward = _program(name, program, program.invars, first, [*outs, *saved], leave=_places(away, [*outs, *saved]))
    if not grads:
        return ForwardBackward(forward, None, outputs)
    # Without a barrier XLA would merge the second computation with the first, and keep its results.
    held = [*(() if policy is None else program.invars), *(saved if again or policy is not None else ())]
    read = _reads([*repeated, *late_eqns], grads)
    backward = _program(
        f"{name}_backward",
        program,
        [*program.invars, *saved, *cotangents],
        [*repeated, *late_eqns],
        grads,
        behind=[v for v in held if v in read],
        come=away.intersection(saved),
    )
    return ForwardBackward(forward, backward, outputs)


def _places(chosen: set, outvars: list) -> set[int]:
    """Return the positions of values among the saved ones; an output itself stays on the device."""
    last = {v: i for i, v in enumerate(outvars) if isinstance(v, Var) and v in chosen}
    return set(last.values())


def _program(
    name: str, whole: Program, invars, eqns, outvars, behind: Sequence = (), leave: set = frozenset(), come=frozenset()
) -> Callable:
    """Return equations as a compiled function."""
    invars, behind = list(invars), list(behind)
    used = _reads(eqns, outvars)
    consts = {v: c for v, c in whole.consts.items() if v in used}

    def run(*values):
        env = dict(consts)
        env.update(zip(invars, values, strict=True))
        # Each by itself: a barrier of several values needs one layout of all.
        for v in behind:
            env[v] = jax.lax.optimization_barrier(env[v])
        env.update((v, jax.device_put(env[v], jax.memory.Space.Device)) for v in come)
        evaluate(eqns, env)
        outs = [v.val if isinstance(v, Literal) else env[v] for v in outvars]
        return tuple(jax.device_put(x, jax.memory.Space.Host) if i in leave else x for i, x in enumerate(outs))

    run.__name__ = run.__qualname__ = name
    return jit_without_mesh(run)


def _reads(eqns, outvars) -> set:
    found = {v for e in eqns for v in e.invars if isinstance(v, Var)}
    return found | {v for v in outvars if isinstance(v, Var)}


def _output_variables(eqns) -> list:
    return [v for e in eqns for v in e.outvars if not isinstance(v, DropVar)]


def _needed_equations(eqns, wanted: set, stop: set = frozenset()) -> list:
    """Return the equations that compute ``wanted``, in order, with ``stop`` as given."""
    wanted, kept = set(wanted), []
    for eqn in reversed(eqns):
        if any(v in wanted and v not in stop for v in eqn.outvars):
            kept.append(eqn)
            wanted.update(v for v in eqn.invars if isinstance(v, Var))
    return kept[::-1]


def _apply_policy(eqns, policy) -> tuple[set, set]:
    """Return the values that a policy saves, and those of them that it offloads to the host."""
    kept, away = set(), set()
    for eqn in eqns:
        answer = policy(eqn.primitive, *(v.aval for v in eqn.invars), **eqn.params)
        # By name: these classes have no public one (jax 0.10). A policy may also return a bool.
        kind = type(answer).__name__
        if answer is True or kind in ("Saveable", "SaveableType", "Offloadable"):
            kept.update(eqn.outvars)
        if kind == "Offloadable":
            away.update(eqn.outvars)
    return kept, away
