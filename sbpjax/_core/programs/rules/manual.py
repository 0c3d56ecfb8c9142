"""Rules without a split: the user's own `shard_map`, and primitives that XLA cannot compile inside one.

A `shard_map` over four devices inside a planned program has no devices of its own. Every rank runs all four of its
blocks, as a batch whose mapped axes carry the names of the user's mesh, so that its collectives work among them.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sbpjax._core.jax_private import ClosedJaxpr, Literal
from sbpjax._core.programs.normalise import normalise

from .table import Context, local


@local("shard_map", whole=True)
def shard_map_local(ctx: Context, *operands):
    """Run the body once per block of the user's mesh, as nested batches."""
    params = ctx.params
    sizes = dict(params["mesh"].shape)
    program = normalise(ClosedJaxpr(params["jaxpr"], ()))

    def body(*blocks):
        return _evaluate(program, blocks)

    # From the inner axis out, so that the outermost `vmap` is the mesh's first axis, as in `_stack_blocks`.
    for name in reversed(sizes):
        mapped = [0 if name in _axes_of(spec) else None for spec in params["in_specs"]]
        body = jax.vmap(body, in_axes=mapped, axis_name=name, axis_size=sizes[name])
    cut = [_stack_blocks(x, spec, sizes) for x, spec in zip(operands, params["in_specs"], strict=True)]
    results = body(*cut)
    return [_unstack_blocks(x, spec, sizes) for x, spec in zip(results, params["out_specs"], strict=True)]


def _evaluate(program, blocks) -> list:
    """Run a flat program; `jax.core.eval_jaxpr` would bring back the user's mesh, which has no devices here."""
    values = {**program.consts, **dict(zip(program.invars, blocks, strict=True))}

    def read(atom):
        # A literal's own type remembers the user's mesh.
        if not isinstance(atom, Literal):
            return values[atom]
        aval: Any = atom.aval
        return np.asarray(atom.val, aval.dtype)

    for eqn in program.eqns:
        operands, name = [read(v) for v in eqn.invars], eqn.primitive.name
        if name == "pvary":  # a matter of types alone
            results = operands
        elif name == "psum_invariant":
            results = [jax.lax.psum(x, eqn.params["axes"]) for x in operands]
        else:
            results = eqn.primitive.bind(*operands, **eqn.params)
            results = results if eqn.primitive.multiple_results else [results]
        values.update(zip(eqn.outvars, results, strict=True))
    return [read(v) for v in program.outvars]


def _axes_of(spec) -> list[str]:
    return [a for entry in spec for a in _names(entry)]


def _names(entry) -> tuple[str, ...]:
    return () if entry is None else (entry,) if isinstance(entry, str) else tuple(entry)


def _stack_blocks(x, spec, sizes: dict[str, int]):
    """Return the blocks of ``x`` along new leading dims, one per mesh axis in its spec, in the mesh's order."""
    shape, order = [], []
    for dim, n in enumerate(x.shape):
        names = _names(spec[dim]) if dim < len(spec) else ()
        order += [*names, None]
        shape += [*(sizes[a] for a in names), n // math.prod(sizes[a] for a in names)]
    leading = [order.index(a) for a in sizes if a in order]
    return x.reshape(shape).transpose(*leading, *(i for i, a in enumerate(order) if a is None))


def _unstack_blocks(x, spec, sizes: dict[str, int]):
    """Undo `_stack_blocks`; along mesh axes that the spec does not name, all blocks are alike."""
    used = _axes_of(spec)
    for i, name in reversed(list(enumerate(sizes))):
        x = x if name in used else jax.lax.index_in_dim(x, 0, i, keepdims=False)
    leading = [a for a in sizes if a in used]
    ndim = x.ndim - len(leading)
    order, shape = [], []
    for dim in range(ndim):
        names = _names(spec[dim]) if dim < len(spec) else ()
        order += [*(leading.index(a) for a in names), len(leading) + dim]
        shape.append(x.shape[len(leading) + dim] * math.prod(sizes[a] for a in names))
    return x.transpose(order).reshape(shape)


@local("mulhi", whole=True)
def mulhi_local(ctx: Context, x, y):
    """Return the high half of a product, from products of halves: XLA has no `mulhi` inside `shard_map` (JAX 0.10)."""
    unsigned = jnp.dtype(f"uint{8 * x.dtype.itemsize}")
    width = 4 * x.dtype.itemsize
    half, low = jnp.asarray(width, unsigned), jnp.asarray((1 << width) - 1, unsigned)
    a, b = x.astype(unsigned), y.astype(unsigned)
    a_high, a_low, b_high, b_low = a >> half, a & low, b >> half, b & low
    middle = (a_low * b_low >> half) + (a_low * b_high & low) + (a_high * b_low & low)
    high = a_high * b_high + (a_low * b_high >> half) + (a_high * b_low >> half) + (middle >> half)
    if jnp.issubdtype(x.dtype, jnp.signedinteger):
        zero = jnp.zeros((), unsigned)
        high = high - jnp.where(x < 0, b, zero) - jnp.where(y < 0, a, zero)
    return high.astype(x.dtype)
