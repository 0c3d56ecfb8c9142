"""State of a step: which results are the new values of which arguments, and which of those are parameters.

    new_params, new_opt_state, loss = step(params, opt_state, batch)

A subtree of the result is the new value of a subtree of the arguments if both have the same structure, shapes and
dtypes, and some result is computed from its argument elementwise, as every update is: ``p - lr * g``,
``b * m + (1 - b) * g``. A gradient has the structure of the parameters, too, but comes out of a product. Parameters are
the state that the backward reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from sbpjax._core.jax_private import Var
from sbpjax._core.planner.control import body_program
from sbpjax._core.programs.normalise import Program, is_backward
from sbpjax._core.programs.primitives import CONTROL, MOVES, OWN_ROWS, PRODUCTS
from sbpjax.graph.auto.planning_problem import BATCH, BUFFER, NUMBER, PARAMETER, STATE

_UPDATES = (OWN_ROWS | CONTROL | {"optimization_barrier", "dynamic_update_slice"}) - MOVES


def pair_state(args: Any, result: Any, avals: Sequence, program: Program) -> dict[int, int]:
    """Return for the outputs that are new values of inputs the input.

    Args:
        args: the arguments' trees, with the positions of inputs as leaves.
        result: the result's tree, with the positions of outputs as leaves.
        avals: of the inputs.
        program: the flat program.
    """
    sources = _update_sources(program, avals)
    outs: list[Any] = [v.aval for v in program.outvars]
    offered: dict = {}
    for structure, leaves in _subtrees(args):
        offered.setdefault((structure, _types(avals, leaves)), []).append(leaves)
    pairs: dict[int, int] = {}
    used: set[int] = set()
    for structure, leaves in _subtrees(result):
        if any(o in pairs for o in leaves):
            continue
        for given in offered.get((structure, _types(outs, leaves)), ()):
            alike = list(zip(leaves, given, strict=True))
            if used.isdisjoint(given) and any(sources[o] >> i & 1 for o, i in alike):
                pairs.update(alike)
                used.update(given)
                break
    return pairs


def _subtrees(tree: Any) -> Iterator[tuple[Any, list[int]]]:
    """Yield ``(structure, positions)`` of every subtree with leaves, larger ones before their parts."""
    leaves, structure = jax.tree.flatten(tree)
    leaves = [x for x in leaves if isinstance(x, int)]
    if leaves:
        yield structure, leaves
        children = jax.tree.leaves(tree, is_leaf=lambda x: x is not tree)
        for child in children if len(children) > 1 or children and children[0] is not tree else ():
            yield from _subtrees(child)


def _types(avals: Sequence, leaves: Sequence[int]) -> tuple:
    return tuple((avals[i].shape, avals[i].dtype) for i in leaves)


def _update_sources(program: Program, avals: Sequence) -> list[int]:
    """Return for every output the inputs that it may be the new value of, as the bits of a number.

    These are inputs of its shape from which it is computed elementwise; for integers and random keys, whose updates are
    of any form, all integer inputs that it depends on.
    """
    whole = [not jnp.issubdtype(a.dtype, jnp.inexact) for a in avals]
    near: dict[Var, int] = {v: 1 << i for i, v in enumerate(program.invars)}
    far: dict[Var, int] = {v: whole[i] << i for i, v in enumerate(program.invars)}
    for eqn in program.eqns:
        read = [v for v in eqn.invars if isinstance(v, Var)]
        elementwise = eqn.primitive.name in _UPDATES
        depends = 0
        for v in read:
            depends |= far.get(v, 0)
        for out in eqn.outvars:
            far[out] = depends
            bits = 0
            for v in read if elementwise else ():
                if v.aval.shape == out.aval.shape:
                    bits |= near.get(v, 0)
            near[out] = bits
    found = []
    for out in program.outvars:
        if not isinstance(out, Var):
            found.append(0)
        else:
            discrete = not jnp.issubdtype(out.aval.dtype, jnp.inexact)
            found.append(near.get(out, 0) | (far.get(out, 0) if discrete else 0))
    return found


def kinds_of(names: Sequence[str], avals: Sequence, pairs: dict[int, int], program: Program) -> list[tuple]:
    """Return ``(kind, parent)`` of every input; see `planning_problem.Input`."""
    returned = set(pairs.values())
    learned = _read_by_backward(program)
    alone = not returned  # a forward or a gradient: by JAX's convention its first argument holds the parameters
    first = names[0].partition(".")[0]
    parameters: dict[tuple, list[int]] = {}
    kinds: list[str] = []
    for i, (name, aval) in enumerate(zip(names, avals, strict=True)):
        inexact = jnp.issubdtype(aval.dtype, jnp.inexact)
        is_state = i in returned or alone and name.startswith(f"{first}.")
        kind = NUMBER if not aval.shape else BATCH if not is_state else BUFFER
        if kind == BUFFER and inexact and program.invars[i] in learned:
            kind = PARAMETER
            parameters.setdefault(aval.shape, []).append(i)
        kinds.append(kind)
    found = []
    for name, aval, kind in zip(names, avals, kinds, strict=True):
        parent = None
        if kind == BUFFER:
            alike = [(_common_tail(name, names[p]), -p) for p in parameters.get(aval.shape, ())]
            length, position = max(alike, default=(0, 0))
            if length:
                kind, parent = STATE, -position
        found.append((kind, parent))
    return found


def _common_tail(name: str, other: str) -> int:
    count = 0
    for a, b in zip(reversed(name.split(".")), reversed(other.split(".")), strict=False):
        if a != b:
            break
        count += 1
    return count


def _read_by_backward(program: Program) -> set[Var]:
    """Return the values that the backward reads; without a backward, those that products and lookups read."""
    marked = [_has_backward(eqn) for eqn in program.eqns]
    needed: set[Var] = set()
    for eqn, is_marked in zip(reversed(program.eqns), reversed(marked), strict=True):
        own = is_marked if any(marked) else eqn.primitive.name in PRODUCTS | CONTROL | {"gather"}
        if own or any(v in needed for v in eqn.outvars):
            needed.update(v for v in eqn.invars if isinstance(v, Var))
    return needed


def _has_backward(eqn: Any) -> bool:
    if is_backward(eqn):
        return True
    return eqn.primitive.name == "scan" and any(map(_has_backward, body_program(eqn.params["jaxpr"]).eqns))
