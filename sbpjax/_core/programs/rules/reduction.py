"""Sharding rules of reductions, sort and top-k: sums become partial, max and argmax end in an all-reduce.

The sum of a ``(8, 6)`` tensor over dim 0 keeps a split of dim 1; a split of dim 0 gives a partial sum. A maximum has
no partial form: it ends in an all-reduce of its own, which the strategy declares as hidden. So does an argmax, of value
and index together. Sort and top-k split every dim but their own.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from sbpjax._core.programs.primitives import ARG_REDUCTIONS, REDUCTIONS, SELECTIONS

from .table import B, Context, P, Strategy, local, other_dims, rule


def _keep_dims(eqn, axes) -> list[Strategy]:
    shape = eqn.invars[0].aval.shape
    kept = [d for d in range(len(shape)) if d not in axes]
    return [Strategy((d,), (k,) * len(eqn.outvars)) for k, d in enumerate(kept) if shape[d] > 1]


@rule(*REDUCTIONS)
def reduce(eqn, size: int) -> list[Strategy]:
    """Split kept dims; over reduced dims a sum gives P, max/min/and/or end in an all-reduce of their own."""
    axes = eqn.params["axes"]
    aval = eqn.invars[0].aval
    name = eqn.primitive.name
    over = [d for d in axes if aval.shape[d] > 1]
    found = _keep_dims(eqn, axes)
    if name == "reduce_sum":
        found += [*(Strategy((d,), (P,)) for d in over), Strategy((P,), (P,))]
    elif _all_reduce(name, aval.dtype):
        found += [Strategy((d,), (B,), hidden=(0,)) for d in over]
    return found


def _all_reduce(name: str, dtype):
    """Return the collective that ends a reduction over a split dim, or None: there is none for bitwise and, or."""
    if dtype == jnp.bool_:
        name = {"reduce_and": "reduce_min", "reduce_or": "reduce_max"}.get(name, name)
    elif jnp.issubdtype(dtype, jnp.complexfloating):
        return None
    return {"reduce_max": pmax, "reduce_min": pmin}.get(name)


@local(*REDUCTIONS)
def reduce_local(ctx: Context, x):
    """Reduce the block, with padding set to the neutral element, then across the axes that split a reduced dim."""
    name, axes = ctx.eqn.primitive.name, ctx.params["axes"]
    result = ctx.bind(ctx.mask(x, 0, axes, _neutral(name, x.dtype)))
    over = [a for a, code in enumerate(ctx.ins[0]) if code in axes]
    collective = _all_reduce(name, x.dtype)
    return collective(result, ctx.names(over)) if collective and over else result


def pmax(x, names):
    """Return the maximum over mesh axes; a NaN anywhere gives NaN, as `reduce_max` has it and `lax.pmax` does not."""
    return _reduce_ordered(x, names, jax.lax.pmax, negative_nan=False)


def pmin(x, names):
    """Return the minimum over mesh axes; a NaN anywhere gives NaN."""
    return _reduce_ordered(x, names, jax.lax.pmin, negative_nan=True)


def _reduce_ordered(x, names, collective, negative_nan: bool):
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
        return np.invert(np.zeros((), dtype))
    if jnp.issubdtype(dtype, jnp.inexact):
        return -jnp.inf if name == "reduce_max" else jnp.inf
    info = jnp.iinfo(dtype)
    return info.min if name == "reduce_max" else info.max


@rule(*ARG_REDUCTIONS)
def arg_reduce(eqn, size: int) -> list[Strategy]:
    """Split kept dims; over the searched dim an all-reduce of value and index together, where both fit 64 bits."""
    axes, aval = eqn.params["axes"], eqn.invars[0].aval
    found = _keep_dims(eqn, axes)
    # `arg_reduce_local` reduces both as one int64, of 32 bits each; an index of 64 bits implies that int64 exists.
    packed = aval.dtype.itemsize <= 4 and eqn.outvars[0].aval.dtype.itemsize == 8
    if packed and not jnp.issubdtype(aval.dtype, jnp.complexfloating) and aval.dtype != jnp.uint32:
        found += [Strategy((d,), (B,), hidden=(0,)) for d in axes if aval.shape[d] > 1]
    return found


@local(*ARG_REDUCTIONS)
def arg_reduce_local(ctx: Context, x):
    """Search the block; across the axes that split the searched dim, the best value with the smallest index wins."""
    (axis,) = ctx.params["axes"]
    over = ctx.in_axes(0, axis)
    if not over:
        return ctx.bind(x)
    largest = ctx.eqn.primitive.name == "argmax"
    name = "reduce_max" if largest else "reduce_min"
    x = ctx.mask(x, 0, (axis,), _neutral(name, x.dtype))
    index = ctx.bind(x) + jnp.asarray(ctx.in_part(0, axis)[0]).astype(ctx.params["index_dtype"])
    value = jnp.take_along_axis(x, jnp.expand_dims(ctx.bind(x), axis), axis).squeeze(axis)
    # Value above index in one integer: the order of the values, then that of the indices.
    high = _order_keys(value, largest).astype(jnp.int64) << 32
    low = jnp.asarray(2**32 - 1) - index if largest else index
    best = (jax.lax.pmax if largest else jax.lax.pmin)(high | low.astype(jnp.int64), ctx.names(over))
    low = best & jnp.asarray(2**32 - 1)
    return (jnp.asarray(2**32 - 1) - low if largest else low).astype(ctx.params["index_dtype"])


def _order_keys(x, largest: bool):
    """Return int32 values in the order in which argmax and argmin see ``x``: equal zeros, NaN before all."""
    if not jnp.issubdtype(x.dtype, jnp.floating):
        return x.astype(jnp.int32)
    # By its bits -0.0 is less than 0.0, but argmax takes the first of equal elements.
    x = jnp.where(x == 0, jnp.zeros_like(x), x).astype(jnp.float32)
    x = jnp.where(jnp.isnan(x), jnp.asarray(jnp.nan if largest else -jnp.nan, x.dtype), x)
    return _sign_magnitude(jax.lax.bitcast_convert_type(x, jnp.int32))


@rule("reduce")
def general_reduce(eqn, size: int) -> list[Strategy]:
    """Split kept dims only: the reduction is any function."""
    shape = eqn.invars[0].aval.shape
    kept = [d for d in range(len(shape)) if d not in eqn.params["dimensions"]]
    half = len(eqn.invars) // 2
    return [Strategy((d,) * half + (B,) * half, (k,) * half) for k, d in enumerate(kept) if shape[d] > 1]


@rule("sort")
def sort(eqn, size: int) -> list[Strategy]:
    """Split dims that are not sorted, on all operands."""
    return other_dims(eqn, {eqn.params["dimension"]})


@rule(*SELECTIONS)
def top_k(eqn, size: int) -> list[Strategy]:
    """Split dims that are not searched."""
    ndim = len(eqn.invars[0].aval.shape)
    along = eqn.params.get("axis", eqn.params.get("reduction_dimension", -1))
    return other_dims(eqn, {along % ndim})
