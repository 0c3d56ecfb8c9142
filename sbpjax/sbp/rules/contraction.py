"""Rules of contractions and reductions: a split of a contracted dim gives a partial sum."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from .table import B, Context, P, Row, local, rows


@rows("dot_general")
def dot_general(eqn, size: int) -> list[Row]:
    """Batch S,S→S; free S,B→S and B,S→S; contracted S,S→P; P,B→P and B,P→P."""
    (contract_l, contract_r), (batch_l, batch_r) = eqn.params["dimension_numbers"]
    shape_l, shape_r = (v.aval.shape for v in eqn.invars)
    free_l = [d for d in range(len(shape_l)) if d not in contract_l and d not in batch_l]
    free_r = [d for d in range(len(shape_r)) if d not in contract_r and d not in batch_r]
    found = [Row((i, j), (k,)) for k, (i, j) in enumerate(zip(batch_l, batch_r, strict=True)) if shape_l[i] > 1]
    at = len(batch_l)
    found += [Row((i, B), (at + k,)) for k, i in enumerate(free_l) if shape_l[i] > 1]
    at += len(free_l)
    found += [Row((B, j), (at + k,)) for k, j in enumerate(free_r) if shape_r[j] > 1]
    found += [Row((i, j), (P,)) for i, j in zip(contract_l, contract_r, strict=True) if shape_l[i] > 1]
    return [*found, Row((P, B), (P,)), Row((B, P), (P,))]


@local("dot_general")
def dot_general_local(ctx: Context, x, y):
    """Contract the blocks; padding along contracted dims is zeroed on both sides (it may hold NaN)."""
    (contract_l, contract_r), _ = ctx.params["dimension_numbers"]
    return ctx.bind(ctx.mask(x, 0, contract_l, 0), ctx.mask(y, 1, contract_r, 0))


_REDUCE = ("reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "reduce_and", "reduce_or", "reduce_xor")


def _kept(eqn, axes) -> list[Row]:
    shape = eqn.invars[0].aval.shape
    kept = [d for d in range(len(shape)) if d not in axes]
    return [Row((d,), (k,) * len(eqn.outvars)) for k, d in enumerate(kept) if shape[d] > 1]


@rows(*_REDUCE)
def reduce(eqn, size: int) -> list[Row]:
    """Kept dims stay split; over reduced dims a sum gives P, max/min/and/or end in an all-reduce of their own."""
    axes = eqn.params["axes"]
    aval = eqn.invars[0].aval
    name = eqn.primitive.name
    over = [d for d in axes if aval.shape[d] > 1]
    found = _kept(eqn, axes)
    if name == "reduce_sum":
        found += [*(Row((d,), (P,)) for d in over), Row((P,), (P,))]
    elif _all_reduce(name, aval.dtype):
        found += [Row((d,), (B,), hidden=(0,)) for d in over]
    return found


def _all_reduce(name: str, dtype):
    """Return the collective that ends a reduction over a split dim, or None: there is none for bitwise and, or."""
    if dtype == jnp.bool_:
        return {"reduce_and": pmin, "reduce_min": pmin, "reduce_or": pmax, "reduce_max": pmax}.get(name)
    if jnp.issubdtype(dtype, jnp.complexfloating):
        return None
    return {"reduce_max": pmax, "reduce_min": pmin}.get(name)


@local(*_REDUCE)
def reduce_local(ctx: Context, x):
    """Reduce the block, with padding set to the neutral element, then across the axes that split a reduced dim."""
    name, axes = ctx.eqn.primitive.name, ctx.params["axes"]
    result = ctx.bind(ctx.mask(x, 0, axes, _neutral(name, x.dtype)))
    over = [a for a, code in enumerate(ctx.ins[0]) if code in axes]
    collective = _all_reduce(name, x.dtype)
    return collective(result, ctx.names(over)) if collective and over else result


def pmax(x, names):
    """Return the maximum over mesh axes; a NaN anywhere gives NaN, as `reduce_max` does and a bare `lax.pmax` does not."""
    return _ordered(x, names, jax.lax.pmax, negative_nan=False)


def pmin(x, names):
    """Return the minimum over mesh axes; a NaN anywhere gives NaN."""
    return _ordered(x, names, jax.lax.pmin, negative_nan=True)


def _ordered(x, names, collective, negative_nan: bool):
    # XLA's all-reduce drops NaNs on some platforms. Integers ordered as the floats are, with NaN outermost, do not.
    if x.dtype == jnp.bool_:
        return collective(x.astype(jnp.int8), names).astype(jnp.bool_)
    if not jnp.issubdtype(x.dtype, jnp.floating):
        return collective(x, names)
    integer = jnp.dtype(f"int{8 * x.dtype.itemsize}")
    nan = jnp.asarray(-jnp.nan if negative_nan else jnp.nan, x.dtype)
    bits = jax.lax.bitcast_convert_type(jnp.where(jnp.isnan(x), nan, x), integer)
    reduced = collective(_sign_magnitude(bits), names)
    return jax.lax.bitcast_convert_type(_sign_magnitude(reduced), x.dtype)


def _sign_magnitude(bits):
    """Map the bits of floats to integers of the same order, and back."""
    return jnp.where(bits < 0, bits ^ jnp.iinfo(bits.dtype).max, bits)


def _neutral(name: str, dtype):
    if name in ("reduce_sum", "reduce_or", "reduce_xor"):
        return 0
    if name == "reduce_prod":
        return 1
    if dtype == jnp.bool_:
        return name in ("reduce_and", "reduce_min")
    if name == "reduce_and":
        return ~np.zeros((), dtype)
    if jnp.issubdtype(dtype, jnp.inexact):
        return -jnp.inf if name == "reduce_max" else jnp.inf
    info = jnp.iinfo(dtype)
    return info.min if name == "reduce_max" else info.max


@rows("argmax", "argmin")
def arg_reduce(eqn, size: int) -> list[Row]:
    """Kept dims only: an index speaks of the whole dim."""
    return _kept(eqn, eqn.params["axes"])


@rows("reduce")
def general_reduce(eqn, size: int) -> list[Row]:
    """Kept dims only: the reduction is any function."""
    shape = eqn.invars[0].aval.shape
    kept = [d for d in range(len(shape)) if d not in eqn.params["dimensions"]]
    half = len(eqn.invars) // 2
    return [Row((d,) * half + (B,) * half, (k,) * half) for k, d in enumerate(kept) if shape[d] > 1]


@rows("ragged_dot_general")
def ragged_dot(eqn, size: int) -> list[Row]:
    """As `dot_general`, but the ragged dim and the groups stay whole: group sizes speak of all of it."""
    numbers = eqn.params["ragged_dot_dimension_numbers"]
    (contract_l, contract_r), (batch_l, batch_r) = numbers.dot_dimension_numbers
    (ragged,), groups = numbers.lhs_ragged_dimensions, numbers.rhs_group_dimensions
    shape_l, shape_r, counts = (v.aval.shape for v in eqn.invars[:3])
    rest = (B,) * (len(eqn.invars) - 2)
    if ragged in batch_l or len(counts) > 1:
        return []
    free_l = [d for d in range(len(shape_l)) if d not in contract_l and d not in batch_l]
    free_r = [d for d in range(len(shape_r)) if d not in contract_r and d not in batch_r and d not in groups]
    first = 1 if ragged in contract_l else 0  # a ragged contraction gives one product per group, along a new dim 0
    pairs = [(i, j) for i, j in zip(batch_l, batch_r)] + [(i, B) for i in free_l] + [(B, j) for j in free_r]
    found = []
    for o, (i, j) in enumerate(pairs, first):
        if i != ragged and (shape_l[i] if i != B else shape_r[j]) > 1:
            found.append(Row((i, j, *rest), (o,)))
    contracted = [(i, j) for i, j in zip(contract_l, contract_r) if i != ragged and shape_l[i] > 1]
    found += [Row((i, j, *rest), (P,)) for i, j in contracted]
    return [*found, Row((P, B, *rest), (P,)), Row((B, P, *rest), (P,))]


@local("ragged_dot_general")
def ragged_dot_local(ctx: Context, x, y, *groups):
    """Contract the blocks; padding along contracted dims is zeroed on both sides."""
    (contract_l, contract_r), _ = ctx.params["ragged_dot_dimension_numbers"].dot_dimension_numbers
    return ctx.bind(ctx.mask(x, 0, contract_l, 0), ctx.mask(y, 1, contract_r, 0), *groups)
