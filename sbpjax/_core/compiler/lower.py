"""SPMD lowering: a plan becomes one `shard_map` program with explicit collectives.

`run_plan` interprets the equations on this rank's blocks inside `shard_map`, converting each operand to the layout its
equation wants; a converted copy is kept as long as the value lives, so that two readers pay once. `spmd_function` wraps
it into a function over physical arrays.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import jax
import jax.numpy as jnp

from sbpjax._core.jax_private import DropVar, Literal, Var
from sbpjax._core.planner.control import body_plans
from sbpjax._core.planner.prices.links import written_as_all_reduce
from sbpjax._core.programs.normalise import (
    normalise,
    run_program,
    run_scan_with_body,
    scan_counts,
    source_context,
    while_counts,
)
from sbpjax._core.programs.outline import run_outlined
from sbpjax._core.programs.plan import Copies, Plan
from sbpjax._core.programs.primitives import CONTROL
from sbpjax._core.programs.rules import Context, compute
from sbpjax._core.programs.rules.table import is_number, local
from sbpjax.sbp import boxing
from sbpjax.sbp.algebra import B, P
from sbpjax.sbp.conversion_steps import MeshPosition
from sbpjax.sbp.layout import local_shape, physical_spec

from .in_place import aliasable_scan_pairs, write_scans_in_place


def run_plan(plan: Plan, here: MeshPosition, blocks: Sequence) -> list:
    """Run a plan on this rank's blocks and return its blocks of the outputs."""
    program = plan.program
    everywhere = (B,) * len(plan.sizes)
    copies = Copies(plan.sizes)
    for variable, codes, block in zip(program.invars, plan.in_codes, blocks, strict=True):
        copies.put(variable, codes, block)
    # A constant is a part of the program, so every rank has the whole of it.
    for variable, value in program.consts.items():
        copies.put(variable, everywhere, value)
    last = _last_reads(program)
    held: dict[int, list] = {}
    for i, eqn in enumerate(program.eqns):
        ins, outs = plan.ins(i) if eqn.invars else (), plan.outs(i) if eqn.outvars else ()
        # A checkpoint's barrier is one equation per operand, so that each is planned by itself, and one barrier again
        # here: the recomputation must wait for all of them.
        if eqn.primitive.name == "optimization_barrier" and i not in held:
            held.update(_merge_barriers(plan, copies, here, i))
        if i in held:
            results = held.pop(i)
        else:
            # Profiles and HLO name the module of each rule's operations, collectives included.
            with source_context(eqn):
                operands = [_read(copies, here, v, c) for v, c in zip(eqn.invars, ins, strict=True)]
                results = compute(Context(eqn, here, ins, outs, plan.bodies.get(i)), operands)
        for variable, codes, value in zip(eqn.outvars, outs, results, strict=True):
            if not isinstance(variable, DropVar):
                copies.put(variable, codes, value)
        for variable in last[i]:
            # XLA frees by its own liveness; dropping here keeps the tracers of thousands of values from living through
            # the trace.
            copies.drop(variable)
    return [_read(copies, here, v, c) for v, c in zip(program.outvars, plan.out_codes, strict=True)]


def _merge_barriers(plan: Plan, copies: Copies, here: MeshPosition, start: int) -> dict[int, list]:
    """Run adjacent barriers as one: the recomputation after them waits until all of their operands are there."""
    eqns, made = plan.program.eqns, set()
    operands: list[list] = []
    for k in range(start, len(eqns)):
        # A barrier after one of these waits for it, and begins a group of its own.
        if eqns[k].primitive.name != "optimization_barrier" or made.intersection(
            v for v in eqns[k].invars if isinstance(v, Var)
        ):
            break
        made.update(eqns[k].outvars)
        operands.append([_read(copies, here, v, c) for v, c in zip(eqns[k].invars, plan.ins(k), strict=True)])
    results = iter(jax.lax.optimization_barrier([x for group in operands for x in group]))
    return {k: [next(results) for _ in group] for k, group in enumerate(operands, start)}


def _last_reads(program) -> list[list[Var]]:
    seen = {v for v in program.outvars if isinstance(v, Var)}
    result: list[list[Var]] = []
    for eqn in reversed(program.eqns):
        mine = {v for v in eqn.invars if isinstance(v, Var) and v not in seen}
        seen |= mine
        result.append(list(mine))
    return result[::-1]


def _read(copies: Copies, here: MeshPosition, variable, target):
    if isinstance(variable, Literal):
        # As a Python number it stays weakly typed, and a constant of the program.
        if all(c == B for c in target):
            return variable.val
        aval: Any = variable.aval
        value = jnp.asarray(variable.val, aval.dtype)
        return boxing.run(here, value, (), (B,) * len(target), target)
    source = copies.source(variable, target)
    values = copies.known[variable]
    if source != target:
        values[target] = boxing.run(here, values[source], variable.aval.shape, source, target)
    return values[target]


def _gathered_outputs(plan: Plan, written: Sequence[tuple[str, ...]]) -> set[int]:
    """Return the outputs of all-gathers that the compiler does not write as all-reduces."""
    found = {}
    for conversion in plan.boxings:
        moving = [step for step in conversion.steps if step.bytes]
        if moving and moving[-1].kind == "all_gather" and not moving[-1].is_all_reduce(written[moving[-1].axis]):
            found[conversion.value] = conversion.target
    outs = enumerate(zip(plan.program.outvars, plan.out_codes, strict=True))
    numbers = ((o, v, codes) for o, (v, codes) in outs if isinstance(v, Var) and is_number(v))
    return {o for o, v, codes in numbers if found.get(v) == codes}


def _rewrite_in_place(x, here: MeshPosition):
    """Return a gathered block as the result of an equation, written in place of the old one."""
    # libtpu 0.0.42 makes two copies of ZeRO-1's gathered parameters: of the old one first, since its memory is to be
    # written, and of the gather's result, which is not made there. After a `where` with a constant outcome it makes
    # one.
    return jnp.where(here.index(0) < 0, jnp.zeros_like(x), x)


def unstack(block, codes):
    """Drop the leading dims of size 1 that hold this rank's summand."""
    stacked = sum(c == P for c in codes)
    return block.reshape(block.shape[stacked:]) if stacked else block


def stack(block, codes):
    """Add a leading dim of size 1 per partial axis."""
    stacked = sum(c == P for c in codes)
    return block.reshape((1,) * stacked + block.shape) if stacked else block


def spmd_function(plan: Plan, placement, *, repeats: str = "copies", over: Mapping[int, int] = MappingProxyType({})):
    """Return the function of a plan over physical arrays, as a `shard_map` over the placement's mesh.

    Args:
        plan: the plan.
        placement: the placement.
        repeats: the form of repeated layers: ``"copies"`` leaves them as they are, ``"calls"`` makes them calls of one
            function (`_core.programs.outline`).
        over: output → the input whose memory it gets: loops write such stacks in place (`_core.compiler.in_place`), and
            on a TPU gathered results are.
    """
    names = placement.axis_names
    avals_in: list[Any] = [v.aval for v in plan.program.invars]
    avals_out: list[Any] = [v.aval for v in plan.program.outvars]
    written = written_as_all_reduce(placement) if placement.type == "tpu" else None
    here = MeshPosition(plan.sizes, names, written)
    gathered = _gathered_outputs(plan, written).intersection(over) if written is not None else set()

    def body(*physical):
        blocks = [unstack(x, c) for x, c in zip(physical, plan.in_codes, strict=True)]
        if repeats == "copies" and not aliasable_scan_pairs(plan.program, over):
            results = run_plan(plan, here, blocks)
        else:
            # Traced apart and normalised: `outline` and `in_place` look for layers and loops in equations, and here are
            # only tracers.
            flat = write_scans_in_place(normalise(jax.make_jaxpr(lambda *xs: run_plan(plan, here, xs))(*blocks)), over)
            results = (run_program if repeats == "copies" else run_outlined)(flat, blocks)
        # libtpu 0.0.42 copies a donated buffer that an all-gather's result is to take over; the `where` goes when it
        # does not.
        results = [_rewrite_in_place(r, here) if o in gathered else r for o, r in enumerate(results)]
        return tuple(
            # Random keys have a dtype of JAX's own, which `asarray` refuses.
            stack(jnp.asarray(r, a.dtype), c) if not hasattr(a.dtype, "_rules") else r
            for r, c, a in zip(results, plan.out_codes, avals_out, strict=True)
        )

    replicated = all(c == B for codes in (*plan.in_codes, *plan.out_codes) for c in codes)
    # jax 0.10; drop this branch and `body_of_full` when a shard_map of empty operands compiles.
    if replicated and avals_in and not any(math.prod(a.shape) for a in avals_in):
        # Shardy refuses a call whose operands are all empty and the same everywhere; every rank computes alike anyway.
        return lambda *arrays: run_program(plan.program, arrays)
    full = [math.prod(a.shape) > 0 for a in avals_in]

    # Shardy refuses a call all of whose operands are empty, so the ranks make those.
    def body_of_full(*physical):
        given = iter(physical)
        return body(*[
            next(given) if f else stack(jnp.zeros(local_shape(a.shape, c, plan.sizes), a.dtype), c)
            for f, c, a in zip(full, plan.in_codes, avals_in, strict=True)
        ])  # fmt: skip

    # Padding and partial sums are stored in the arrays themselves (a leading dim per P axis), so plain PartitionSpecs
    # are enough here.
    specs = [physical_spec(c, len(a.shape), names) for c, a in zip(plan.in_codes, avals_in, strict=True)]
    run = jax.shard_map(
        body if all(full) else body_of_full,
        mesh=placement.auto_mesh,
        in_specs=tuple(s for s, f in zip(specs, full, strict=True) if f),
        out_specs=tuple(physical_spec(c, len(a.shape), names) for c, a in zip(plan.out_codes, avals_out, strict=True)),
        # JAX's check cannot prove that the result of an all-gather is equal on all ranks; the plan knows it.
        check_vma=False,
    )
    return run if all(full) else lambda *arrays: run(*[x for x, f in zip(arrays, full, strict=True) if f])


def _call(ctx: Context, plan):
    """Return a function that runs a body's plan on local blocks."""
    return lambda *blocks: run_plan(plan, ctx.here, blocks)


@local(*CONTROL)
def control_local(ctx: Context, *blocks):
    """Run the loop or branch over local blocks, its bodies lowered by their own plans."""
    params = ctx.params
    plans = [ctx.body] if ctx.body is not None else body_plans(ctx.eqn, ctx.here.sizes, ctx.ins, ctx.outs)
    calls = [_call(ctx, plan) for plan in plans]
    if ctx.eqn.primitive.name == "cond":
        return jax.lax.switch(blocks[0], calls, *blocks[1:])
    if ctx.eqn.primitive.name == "while":
        nc, nb = while_counts(params)
        test, body = blocks[:nc], blocks[nc : nc + nb]
        return jax.lax.while_loop(
            lambda carry: calls[0](*test, *carry)[0], lambda carry: tuple(calls[1](*body, *carry)), blocks[nc + nb :]
        )
    consts, carry = scan_counts(params)
    first = consts + carry
    return run_scan_with_body(params, calls[0], blocks[:consts], blocks[consts:first], blocks[first:])
