"""Sharding rules of grouped matmuls: splits of sequences, rows, groups and both matrix dims.

On 4 ranks x ``(8, 4096, 1024)``, of 8 sequences, w ``(16, 1024, 4096)`` and sizes ``(8, 16)`` may be split by
sequences, ``S0, B, S0 → S0``, by rows, ``S1, B, B → S1``, or by the columns of the matrices, ``B, S2, B → S2``. Split
by groups, ``B, S0, B → P``, each rank has four of the sixteen matrices, and multiplies the rows of theirs with them.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import lax

from .table import B, Context, P, Strategy, local, rule


def _lead(eqn) -> int:
    return len(eqn.invars[2].aval.shape) - 1


@rule("grouped_matmul")
def grouped_matmul(eqn, size: int) -> list[Strategy]:
    """Split sequences, rows and columns; a split sum or split groups give P, as does one partial operand."""
    lead, (x, w) = _lead(eqn), (v.aval.shape for v in eqn.invars[:2])
    inner, outer = (2, 1) if eqn.params["transposed"] else (1, 2)
    found = [Strategy((d, B, d, d), (d,)) for d in range(lead) if x[d] > 1]
    found += [Strategy((lead, B, B, B), (lead,))] if x[lead] > 1 else []
    found += [Strategy((B, outer, B, B), (lead + 1,))] if w[outer] > 1 else []
    found += [Strategy((lead + 1, inner, B, B), (P,))] if w[inner] > 1 else []
    found += [Strategy((B, 0, B, B), (P,))] if w[0] > 1 else []
    return [*found, Strategy((P, B, B, B), (P,)), Strategy((B, P, B, B), (P,))]


@rule("grouped_outer")
def grouped_outer(eqn, size: int) -> list[Strategy]:
    """Split groups and both dims of the matrices; split sequences or rows give P, as does one partial operand."""
    lead, (x, y) = _lead(eqn), (v.aval.shape for v in eqn.invars[:2])
    found = [Strategy((d, d, d, d), (P,)) for d in range(lead) if x[d] > 1]
    found += [Strategy((lead, lead, B, B), (P,))] if x[lead] > 1 else []
    found += [Strategy((lead + 1, B, B, B), (1,))] if x[-1] > 1 else []
    found += [Strategy((B, lead + 1, B, B), (2,))] if y[-1] > 1 else []
    found += [Strategy((B, B, B, B), (0,))] if eqn.outvars[0].aval.shape[0] > 1 else []
    return [*found, Strategy((P, B, B, B), (P,)), Strategy((B, P, B, B), (P,))]


@local("grouped_matmul")
def grouped_matmul_local(ctx: Context, x, w, starts, sizes):
    """Multiply the block's rows with this rank's matrices; padding adds nothing to sums."""
    inner = 2 if ctx.params["transposed"] else 1
    x, w = ctx.mask(x, 0, (len(ctx.in_shape(0)) - 1,), 0), ctx.mask(w, 1, (inner,), 0)
    axes = ctx.in_axes(1, 0)
    part = (*ctx.in_part(1, 0), w.shape[0]) if axes else None
    return ctx.bind(x, w, *_spans(ctx, starts, sizes, part), packed=ctx.params["packed"] and not axes)


@local("grouped_outer")
def grouped_outer_local(ctx: Context, x, y, starts, sizes):
    """Sum over the block's rows of the groups that are wanted here."""
    axes = ctx.out_axes(0, 0)
    part = (*ctx.out_part(0, 0), ctx.local_out()[0]) if axes else None
    return ctx.bind(x, y, *_spans(ctx, starts, sizes, part), packed=ctx.params["packed"] and not axes)


def _spans(ctx: Context, starts, sizes, groups):
    """Return the positions of groups in this rank's rows; `groups`: the first, the count, and the padded count."""
    lead = len(ctx.in_shape(2)) - 1
    sizes = ctx.mask(sizes, 3, range(lead), 0)
    if ctx.in_axes(0, lead):
        offset, count = ctx.in_part(0, lead)
        first, behind = (jnp.clip(x - offset, 0, count).astype(np.int32) for x in (starts, starts + sizes))
        starts, sizes = first, behind - first
    if groups is None:
        return starts, sizes
    first, count, padded = groups
    pad = [(0, 0)] * lead + [(0, padded)]
    starts, sizes = (lax.dynamic_slice_in_dim(jnp.pad(x, pad), first, padded, lead) for x in (starts, sizes))
    return starts, jnp.where(jnp.arange(padded) < count, sizes, 0)
