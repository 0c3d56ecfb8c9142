"""Names for values of a step without a source line, after their parameter: ``gradient of blocks.0.mlp.up.weight``.

    f32[256,64] P → S0    gradient of blocks.0.mlp.up.weight
    f32[256,64] S0 → B    update of blocks.0.mlp.up.weight

A value belongs to a parameter if, through equations that keep its number of elements and are no products, or that cut
and join stacks, it reaches that parameter's new value and no other's. It is the parameter itself, or a state of its, if
it is an input or a copy of one; an update if it is computed from such an input; else it is the gradient. Stacks of
equal layers are called ``blocks.*.mlp.up.weight``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sbpjax._core.jax_private import Literal, Var
from sbpjax._core.programs.normalise import scan_counts
from sbpjax._core.programs.plan import Plan
from sbpjax._core.programs.primitives import GROUPED, LOSSES, PRODUCTS, SCATTERS

from .forward_backward import COPIES

_COPIES = COPIES | {"optimization_barrier"}
_STACKING = {"concatenate", "slice"}  # stacks of layers, and the parts that a program computes outside a loop
# Their operands may have as many elements as the gradient that they compute.
_PRODUCTS = PRODUCTS | SCATTERS | GROUPED | LOSSES


def value_names(plan: Plan, program: Any, state: Any) -> dict[Var, str]:
    """Return the name of every value of a plan that belongs to a parameter.

    Args:
        plan: the plan of ``program``, loops included.
        program: the graph's program: its slots are its inputs from the second on, its first outputs are the written
            state.
        state: the tensors of the slots, and their names.
    """
    names = names_of(state)
    called = [pattern_of([names[p] for p in slot.places]) for slot in program.slots]
    parameters = [names[slot.places[0]][0] == "" for slot in program.slots]
    inputs: dict[Var, tuple[str, str]] = dict(zip(plan.program.invars[1:], called))
    first = 1 + len(program.slots) + len(program.number_names)
    inputs.update((v, ("", "an argument")) for v in plan.program.invars[first:])
    results = {
        v: called[slot][1]
        for v, slot in zip(plan.program.outvars, program.written)
        if isinstance(v, Var) and parameters[slot]
    }
    found: dict[Var, str] = {}
    name_values(plan, inputs, results, set(), found)
    return found


def names_of(state: Any) -> list[tuple[str, str]]:
    """Return for every tensor its kind of parameter state (``""``: the parameter itself), and that parameter's name."""
    name_of = {id(t): name for t, name in zip(state.tensors, state.names, strict=True)}
    kinds = {
        id(t): (str(kind), name_of[id(param)])
        for optimizer in state.optimizers
        for param, tensors in optimizer.state.items()
        if id(param) in name_of
        for kind, t in tensors.items()
    }
    return [kinds.get(id(t), ("", name)) for t, name in zip(state.tensors, state.names, strict=True)]


def pattern_of(names: Sequence[tuple[str, str]]) -> tuple[str, str]:
    """Return one name for tensors of equal layers: a differing part becomes a star."""
    parts = [name.split(".") for _, name in names]
    if len({len(p) for p in parts}) > 1:
        return names[0]
    return names[0][0], ".".join(p[0] if len(set(p)) == 1 else "*" for p in zip(*parts, strict=True))


def name_values(plan: Plan, inputs: dict, results: dict, made: set, found: dict[Var, str]) -> set:
    """Add the names of a program's values to ``found``; return those computed from parameters or their state.

    ``inputs`` has the kinds of inputs: ``(kind, parameter)``; ``results`` the parameter whose new value an output is,
    or leads to; ``made`` the inputs that were computed from parameters or their state.
    """
    owner = reached_parameters(plan, {v: {name} for v, name in results.items()})
    copies, touched = dict(inputs), {*inputs, *made}
    for i, eqn in enumerate(plan.program.eqns):
        if i in plan.bodies:
            touched |= _name_body(plan.bodies[i], eqn, copies, touched, owner, found)
            continue
        read = [v for v in eqn.invars if isinstance(v, Var)]
        if len(read) == 1 and eqn.primitive.name in _COPIES and read[0] in copies:
            copies[eqn.outvars[0]] = copies[read[0]]
        for v in eqn.outvars:
            own = owner.get(v)
            if own and any(u in touched and (u not in copies or copies[u][1] in own) for u in read):
                touched.add(v)
    for v, own in owner.items():
        if len(own) == 1 and v not in copies:
            found[v] = f"{'update' if v in touched else 'gradient'} of {next(iter(own))}"
    for v, (kind, name) in copies.items():
        found[v] = f"{kind} of {name}" if kind else name
    return touched


def reached_parameters(plan: Plan, results: dict[Var, set[str]]) -> dict[Var, set[str]]:
    """Return value → the parameters whose new values it reaches through equations that keep, cut or join elements."""
    owner = {v: set(names) for v, names in results.items()}
    for i, eqn in reversed(list(enumerate(plan.program.eqns))):
        if eqn.primitive.name == "scan":
            consts, carry = scan_counts(eqn.params)
            pairs = list(
                zip(eqn.invars[consts : consts + carry], (owner.get(u, ()) for u in eqn.outvars), strict=False)
            )
            if i in plan.bodies:  # an optimizer's loop over equal layers
                body = plan.bodies[i]
                outs = zip(body.program.outvars, eqn.outvars, strict=True)
                inside = reached_parameters(body, {v: owner[u] for v, u in outs if isinstance(v, Var) and u in owner})
                layers = zip(eqn.invars, body.program.invars, strict=True)
                pairs += [(v, inside.get(u, ())) for v, u in list(layers)[consts + carry :]]
            for v, names in pairs:
                if isinstance(v, Var) and names:
                    owner.setdefault(v, set()).update(names)
            continue
        for v in eqn.invars:
            # A scalar, such as the norm of all gradients, would tie every parameter to every other.
            if isinstance(v, Literal) or not v.aval.shape or eqn.primitive.name in _PRODUCTS:
                continue
            for u in eqn.outvars:
                if u in owner and (u.aval.size == v.aval.size or eqn.primitive.name in _STACKING):
                    owner.setdefault(v, set()).update(owner[u])
    return owner


def _name_body(body: Plan, eqn: Any, copies: dict, touched: set, owner: dict, found: dict[Var, str]) -> set:
    """Name the values in the body of a loop by their names outside; return its results of parameters or their state."""
    pairs = list(zip(body.program.invars, eqn.invars, strict=True))
    inputs = {v: copies[u] for v, u in pairs if isinstance(u, Var) and u in copies}
    made = {v for v, u in pairs if isinstance(u, Var) and u in touched}
    results = {}
    for v, u in zip(body.program.outvars, eqn.outvars, strict=True):
        own = owner.get(u, ())
        if isinstance(v, Var) and len(own) == 1:
            results[v] = next(iter(own))
    inside = name_values(body, inputs, results, made, found)
    return {u for v, u in zip(body.program.outvars, eqn.outvars, strict=True) if v in inside}
