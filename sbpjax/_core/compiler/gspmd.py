"""GSPMD lowering: the same plan as sharding constraints, with the collectives left to XLA's partitioner.

The SPMD lowering (`_core.compiler.lower`) writes every collective itself. This lowering runs the equations on logical
arrays and marks each operand and each result with its planned layout by ``with_sharding_constraint``. XLA's partitioner
knows no partial sum and no uneven parts: where the plan has P it reduces at once, and a dim that does not divide is
left unmarked. So it may move more than was planned; it gives the same values, which makes it a cross-check and a way
out.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from sbpjax._core.jax_private import Literal
from sbpjax._core.programs.normalise import bind
from sbpjax._core.programs.plan import Plan
from sbpjax._core.programs.primitives import ATTENTION
from sbpjax.sbp import even_split
from sbpjax.sbp.algebra import B
from sbpjax.sbp.layout import Layout, axes_of_dims, layout_of


def gspmd_function(plan: Plan, placement):
    """Return the function of a plan over physical arrays, as a program with sharding constraints."""
    program = plan.program

    def layout(variable, codes) -> Layout:
        return layout_of(placement, tuple(codes), tuple(variable.aval.shape), variable.aval.dtype)

    def run(*physical):
        env: dict = {}
        for variable, codes, array in zip(program.invars, plan.in_codes, physical, strict=True):
            env[variable] = logical_array(array, layout(variable, codes))
        env.update(program.consts)
        for i, eqn in enumerate(program.eqns):
            ins, outs = plan.ins(i) if eqn.invars else (), plan.outs(i) if eqn.outvars else ()
            operands = [
                v.val if isinstance(v, Literal) else constrain(env[v], codes, placement)
                for v, codes in zip(eqn.invars, ins, strict=True)
            ]
            results = _bind(eqn, operands)
            env.update(
                (v, constrain(x, codes, placement)) for v, codes, x in zip(eqn.outvars, outs, results, strict=True)
            )
        return tuple(
            physical_array(v.val if isinstance(v, Literal) else env[v], layout(v, codes))
            for v, codes in zip(program.outvars, plan.out_codes, strict=True)
        )

    return run


def _bind(eqn, operands) -> list:
    # Its own constraint is set on its result, as on every other.
    if eqn.primitive.name == "to_sbp":
        return list(operands)
    if eqn.primitive.name in ATTENTION:  # XLA's partitioner cannot divide a kernel
        eqn = eqn.replace(params={**eqn.params, "kernel": "blocks"})
    return bind(eqn, operands)


def constrain(array, codes, placement):
    """Mark a logical array with an nd-sbp; P and dims that do not divide are left out."""
    shape = getattr(array, "shape", ())
    if not shape or hasattr(array.dtype, "_rules"):
        return array
    sizes = placement.hierarchy
    kept = tuple(c if c >= 0 else B for c in codes)
    for dim, axes in enumerate(axes_of_dims(kept, len(shape))):
        if not even_split.even(shape[dim], tuple(sizes[a] for a in axes)):
            kept = tuple(B if c == dim else c for c in kept)
    return jax.lax.with_sharding_constraint(array, layout_of(placement, kept, shape, array.dtype).sharding)


def constrain_with_gradient(array, *, codes, grad_codes, placement):
    """Mark a logical array with an nd-sbp, and its gradient with another; the same, where that is None."""
    if grad_codes is None:
        return constrain(array, codes, placement)

    @jax.custom_vjp
    def mark(x):
        return constrain(x, codes, placement)

    mark.defvjp(lambda x: (mark(x), None), lambda _, g: (constrain(g, grad_codes, placement),))
    return mark(array)


def logical_array(array, layout: Layout):
    """Return the logical array of a physical one, in a traced program: partial sums added, padding dropped."""
    stacked = len(layout.partial_axes)
    if stacked:
        array = jnp.sum(array, axis=tuple(range(stacked)), dtype=array.dtype)
    for dim, rows in _padded_rows(layout):
        array = jnp.take(array, rows, axis=dim, mode="clip")
    return array


def physical_array(array, layout: Layout):
    """Return the physical array of a logical one, in a traced program: a partial sum is on the first rank."""
    array = jnp.asarray(array, layout.dtype) if not hasattr(layout.dtype, "_rules") else array
    for dim, rows in _padded_rows(layout):
        where = np.zeros(layout.physical_shape[len(layout.partial_axes) + dim], np.int32)
        where[rows] = np.arange(len(rows), dtype=np.int32)
        array = jnp.take(array, where, axis=dim, mode="clip")
    for _ in layout.partial_axes:
        array = array[None]
    for position, axis in enumerate(layout.partial_axes):
        rest = [(0, 0)] * array.ndim
        rest[position] = (0, layout.placement.hierarchy[axis] - 1)
        array = jnp.pad(array, rest)
    return jax.lax.with_sharding_constraint(array, layout.sharding)


def _padded_rows(layout: Layout):
    """Yield for every padded dim the positions of its logical rows in the physical array."""
    sizes = layout.placement.hierarchy
    for dim, axes in enumerate(layout.axes_of_dim):
        own = tuple(sizes[a] for a in axes)
        if even_split.even(layout.shape[dim], own):
            continue
        shard = even_split.shard_size(layout.shape[dim], own)
        blocks = even_split.parts(layout.shape[dim], own)
        rows = np.concatenate([rank * shard + np.arange(count) for rank, (_, count) in enumerate(blocks)])
        yield dim, rows.astype(np.int32)
