"""In-place scans: a loop updates its donated stacks in place, without a second copy of the state.

A ``scan`` over a stack of weights that gives a stack of new weights has two stacks, and where the first is donated, the
new one is copied over it after the loop. AdamW on 64.7B parameters over 64 chips held 6.1 GB of state, and as much
again for a moment. Iteration ``k`` reads slice ``k`` of the old and makes slice ``k`` of the new one, so one stack is
enough if the loop carries it.

An iteration begins by writing the result of the previous one, and reads its own slices afterwards:

    stack = write(stack, k - 1, made);  made = update(stack[k], gradient[k])

Written at the end of its own iteration, a stack would still be read by others: XLA computes the new moments again
wherever they are wanted, reads the old ones for that, and copies the whole stack in every iteration to keep them.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Hashable, Mapping, Sequence

import jax
import jax.numpy as jnp

from sbpjax._core.jax_private import Var, jaxpr_as_fun
from sbpjax._core.programs.normalise import Program, bind, normalise, run_program, scan_counts, source_context


def match_donations(ins: Sequence[Hashable], outs: Sequence[Hashable], donated: Sequence[int]) -> dict[int, int]:
    """Return output → donated input whose memory JAX gives it: the first of its kind that is still free.

    Args:
        ins: the kind of each input: its shape, dtype and layout.
        outs: the same of the outputs.
        donated: positions of the donated inputs.
    """
    waiting: dict[Hashable, deque[int]] = defaultdict(deque)
    for i in sorted(donated):
        # In ascending order, as `jax.jit` pairs donated inputs with outputs (jax 0.10); another pairing here would copy
        # after the loop.
        waiting[ins[i]].append(i)
    return {o: waiting[kind].popleft() for o, kind in enumerate(outs) if waiting[kind]}


def aliasable_scan_pairs(program: Program, given: Mapping[int, int]) -> dict[int, list[tuple[int, int]]]:
    """Return for each loop its in-place writes, as pairs of an operand's and an output's position.

    Args:
        program: a flat program.
        given: output → the input whose memory it gets.
    """
    scans = {i: eqn for i, eqn in enumerate(program.eqns) if eqn.primitive.name == "scan"}
    if not scans or not given:
        return {}
    made = {v: (i, y) for i, eqn in scans.items() for y, v in enumerate(eqn.outvars)}
    last = {v: i for i, eqn in enumerate(program.eqns) for v in eqn.invars if isinstance(v, Var)}
    returned = {v for v in program.outvars if isinstance(v, Var)}
    found: dict[int, list[tuple[int, int]]] = {}
    for o, k in given.items():
        stack, result = program.invars[k], program.outvars[o]
        i, y = made.get(result, (-1, -1)) if isinstance(result, Var) else (-1, -1)
        # A stack that is read after the loop has to stay unchanged.
        if i < 0 or stack in returned or last.get(stack) != i or result.aval != stack.aval:
            continue
        consts, carry = scan_counts(scans[i].params)
        places = [x for x, v in enumerate(scans[i].invars) if v is stack]
        if y >= carry and len(places) == 1 and places[0] >= consts + carry:
            found.setdefault(i, []).append((places[0], y))
    return found


def write_scans_in_place(program: Program, given: Mapping[int, int]) -> Program:
    """Return a program whose loops write the stacks that they may in place; itself if there are none.

    Args:
        program: a flat program.
        given: output → the input whose memory it gets, see `match_donations`.
    """
    pairs = aliasable_scan_pairs(program, given)
    if not pairs:
        return program
    avals = [
        jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype, weak_type=getattr(v.aval, "weak_type", False))
        for v in program.invars
    ]

    def equation(i: int, eqn, operands: list) -> list:
        return _scan(eqn, operands, pairs[i]) if i in pairs else bind(eqn, operands)

    return normalise(jax.make_jaxpr(lambda *arrays: run_program(program, arrays, equation))(*avals))


def _scan(eqn, operands: list, pairs: list[tuple[int, int]]) -> list:
    """Run a loop that carries the stacks of ``pairs`` and writes them."""
    params = eqn.params
    consts, carry = scan_counts(params)
    first, iterations = consts + carry, params["length"]
    begin, end, step = (iterations - 1, 0, -1) if params["reverse"] else (0, iterations - 1, 1)
    body = jaxpr_as_fun(params["jaxpr"])
    own = [x for x, _ in pairs]
    results_of = [y for _, y in pairs]
    others = [x for x in range(first, len(operands)) if x not in own]

    def run_iteration(state, slices):
        k, carried, stacks, made = state
        before = jnp.clip(k - step, 0, iterations - 1)  # the first iteration writes back its own slice
        stacks = [_write(stack, before, x) for stack, x in zip(stacks, made, strict=True)]
        at = dict(zip(others, slices, strict=True))
        at.update((x, _read(stack, k)) for x, stack in zip(own, stacks, strict=True))
        results = body(*operands[:consts], *carried, *(at[x] for x in range(first, len(operands))))
        made = [results[y].astype(x.dtype) for y, x in zip(results_of, made, strict=True)]
        kept = [r for y, r in enumerate(results) if y >= carry and y not in results_of]
        return (k + step, list(results[:carry]), stacks, made), kept

    with source_context(eqn):
        stacks = [operands[x] for x in own]
        start = (jnp.int32(begin), operands[consts:first], stacks, [_read(s, jnp.int32(begin)) for s in stacks])
        (_, last, stacks, made), kept = jax.lax.scan(
            run_iteration,
            start,
            [operands[x] for x in others],
            length=iterations,
            reverse=params["reverse"],
            unroll=params["unroll"],
        )
        stacks = [_write(stack, jnp.int32(end), x) for stack, x in zip(stacks, made, strict=True)]
    found = dict(zip(results_of, stacks, strict=True))
    rest = iter(kept)
    return [*last, *(found[y] if y in found else next(rest) for y in range(carry, len(eqn.outvars)))]


def _read(stack, k):
    begin, sizes = (k, *(jnp.int32(0) for _ in stack.shape[1:])), (1, *stack.shape[1:])
    # A counter is never negative; without this promise JAX adds a select on its sign.
    return jax.lax.dynamic_slice(stack, begin, sizes, allow_negative_indices=False)[0]


def _write(stack, k, x):
    begin = (k, *(jnp.int32(0) for _ in x.shape))
    return jax.lax.dynamic_update_slice(stack, x[None], begin, allow_negative_indices=False)
