"""Sharding rules of contractions: a split of a contracted dim gives a partial sum."""

from __future__ import annotations

from .table import B, Context, P, Strategy, local, rule


@rule("dot_general")
def dot_general(eqn, size: int) -> list[Strategy]:
    """Split batch S,S→S, free S,B→S and B,S→S, contracted S,S→P; keep P,B→P and B,P→P."""
    (contract_l, contract_r), (batch_l, batch_r) = eqn.params["dimension_numbers"]
    shape_l, shape_r = (v.aval.shape for v in eqn.invars)
    free_l = [d for d in range(len(shape_l)) if d not in contract_l and d not in batch_l]
    free_r = [d for d in range(len(shape_r)) if d not in contract_r and d not in batch_r]
    found = [Strategy((i, j), (k,)) for k, (i, j) in enumerate(zip(batch_l, batch_r, strict=True)) if shape_l[i] > 1]
    at = len(batch_l)
    found += [Strategy((i, B), (at + k,)) for k, i in enumerate(free_l) if shape_l[i] > 1]
    at += len(free_l)
    found += [Strategy((B, j), (at + k,)) for k, j in enumerate(free_r) if shape_r[j] > 1]
    found += [Strategy((i, j), (P,)) for i, j in zip(contract_l, contract_r, strict=True) if shape_l[i] > 1]
    # Not P,P: the product of two sums is no sum of products of summands.
    return [*found, Strategy((P, B), (P,)), Strategy((B, P), (P,))]


@local("dot_general")
def dot_general_local(ctx: Context, x, y):
    """Contract the blocks; padding along contracted dims is zeroed on both sides (it may hold NaN)."""
    (contract_l, contract_r), _ = ctx.params["dimension_numbers"]
    return ctx.bind(ctx.mask(x, 0, contract_l, 0), ctx.mask(y, 1, contract_r, 0))


@rule("ragged_dot_general")
def ragged_dot(eqn, size: int) -> list[Strategy]:
    """Split as `dot_general`, but the ragged dim and the groups stay whole: group sizes refer to all of it."""
    numbers = eqn.params["ragged_dot_dimension_numbers"]
    (contract_l, contract_r), (batch_l, batch_r) = numbers.dot_dimension_numbers
    (ragged,), groups = numbers.lhs_ragged_dimensions, numbers.rhs_group_dimensions
    shape_l, shape_r, counts = (v.aval.shape for v in eqn.invars[:3])
    rest = (B,) * (len(eqn.invars) - 2)
    if ragged in batch_l or len(counts) > 1:
        return []
    free_l = [d for d in range(len(shape_l)) if d not in contract_l and d not in batch_l]
    free_r = [d for d in range(len(shape_r)) if d not in contract_r and d not in batch_r and d not in groups]
    # A ragged contraction gives one product per group, along a new dim 0.
    first = 1 if ragged in contract_l else 0
    pairs = [(i, j) for i, j in zip(batch_l, batch_r)] + [(i, B) for i in free_l] + [(B, j) for j in free_r]
    found = []
    for o, (i, j) in enumerate(pairs, first):
        if i != ragged and (shape_l[i] if i != B else shape_r[j]) > 1:
            found.append(Strategy((i, j, *rest), (o,)))
    contracted = [(i, j) for i, j in zip(contract_l, contract_r) if i != ragged and shape_l[i] > 1]
    found += [Strategy((i, j, *rest), (P,)) for i, j in contracted]
    return [*found, Strategy((P, B, *rest), (P,)), Strategy((B, P, *rest), (P,))]


@local("ragged_dot_general")
def ragged_dot_local(ctx: Context, x, y, *groups):
    """Contract the blocks; padding along contracted dims is zeroed on both sides."""
    (contract_l, contract_r), _ = ctx.params["ragged_dot_dimension_numbers"].dot_dimension_numbers
    return ctx.bind(ctx.mask(x, 0, contract_l, 0), ctx.mask(y, 1, contract_r, 0), *groups)
