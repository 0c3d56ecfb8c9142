"""Sharding rules of sparse row updates: a table and its state are split alike by tables, rows or columns.

On 4 ranks a table ``(1000, 16)`` with Adam's two moments, ids ``(64,)`` and gradients ``(64, 16)``: split by rows every
rank takes all ids and gradients, ``B, B, 0, 0, 0 → 0, 0, 0``, and updates those rows that are its own; split by columns
it takes a fourth of each gradient, ``B, 1, 1, 1, 1 → 1, 1, 1``. Nothing is exchanged inside.
"""

from __future__ import annotations

import jax.numpy as jnp

from sbpjax._core.ops.layers.row_update import NOWHERE

from .table import B, Context, Strategy, local, rule


@rule("row_update")
def row_update(eqn, size: int) -> list[Strategy]:
    """Split tables, rows and columns; ids and gradients are split with tables, gradients with columns."""
    count, table = eqn.params["count"], eqn.outvars[0].aval.shape
    tables, lead, numbers = len(eqn.outvars), len(table) - 2, (B,) * count

    def strategy(ids: int, rows: int, dim: int) -> Strategy:
        return Strategy((ids, rows, *numbers, *(dim,) * tables), (dim,) * tables)

    found = [strategy(1, 1, 0)] if lead and table[0] > 1 else []
    found += [strategy(B, B, lead)] if table[lead] > 1 else []
    return found + ([strategy(B, lead + 1, lead + 1)] if table[-1] > 1 else [])


@local("row_update")
def row_update_local(ctx: Context, ids, rows, *rest):
    """Update the named rows of this rank's block; ids of other ranks' rows, and padding, name none here."""
    first = 2 + ctx.params["count"]
    lead = len(ctx.out_shape()) - 2
    if ctx.in_axes(first, lead):
        offset, count = ctx.in_part(first, lead)
        ids = ids - jnp.asarray(offset).astype(ids.dtype)
        ids = jnp.where((ids >= 0) & (ids < count), ids, NOWHERE)
    ids = ctx.mask(ids, 0, (1,) if lead else (), NOWHERE)
    return ctx.bind(ids, rows, *rest)
