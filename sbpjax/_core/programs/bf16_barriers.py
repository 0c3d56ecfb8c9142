"""Barriers that keep XLA from storing bfloat16 values as float32 on an accelerator.

XLA's fusion optimizes one kernel at a time, and takes a cast to float32 for free:

    up (8192, 4096) bf16 → cast → gelu' in float32 → cast → bf16 → two products, a sum

It lets the product that makes ``up`` write float32, twice the bytes, and stores the result of gelu' in float32, since
the sum wants it so; two later kernels read that and cast it again. On an H100 these bytes are a tenth of the step of a
GPT-2. `add_bf16_barriers` puts an `optimization_barrier` on such values: results of products that are cast, and values
that several products read. A barrier costs nothing in the compiled program; it only makes the value exist in its own
dtype.

A GPU has no convolution of 16-bit floats that writes float32: XLA casts both operands, and takes twice as long. Where
one GPU runs the program, `add_bf16_barriers` has it write 16 bits that are cast then, as PyTorch does. Over several
devices the convolution stays: their parts of a gradient are to be added in float32 (`_core.programs.fp32_gradients`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from sbpjax._core.jax_private import (
    ClosedJaxpr,
    DropVar,
    Literal,
    Var,
    new_jaxpr_eqn,
    no_effects,
    optimization_barrier_p,
)

from .primitives import BARRIERS, CONVOLUTIONS, MOVES, PRODUCTS
from .rewrite import rewrite_program


def add_bf16_barriers(closed: ClosedJaxpr, convolutions: bool = False) -> ClosedJaxpr:
    """Return a program with barriers on its 16-bit values that products write or read several times.

    Args:
        closed: the program.
        convolutions: whether those of 16-bit floats write 16 bits, too.
    """
    return rewrite_program(closed, functools.partial(_change, convolutions=convolutions))


def _change(closed: ClosedJaxpr, inside: Callable, convolutions: bool) -> ClosedJaxpr:
    jaxpr = closed.jaxpr
    eqns = [inside(eqn) for eqn in jaxpr.eqns]
    readers: dict[Var, list] = {}
    for eqn in eqns:
        for v in eqn.invars:
            if not isinstance(v, Literal):
                readers.setdefault(v, []).append(eqn)
    renamed: dict[Var, Var] = {}
    found: list = []
    for eqn in eqns:
        eqn = eqn.replace(invars=[v if isinstance(v, Literal) else renamed.get(v, v) for v in eqn.invars])
        if convolutions and eqn.primitive.name in CONVOLUTIONS and _widens(eqn):
            found += _cast_behind(eqn)
            continue
        found.append(eqn)
        if eqn.primitive.name in MOVES | BARRIERS or len(eqn.outvars) != 1 or not _is_narrow(eqn.outvars[0]):
            continue
        (v,) = eqn.outvars
        product = eqn.primitive.name in PRODUCTS
        if (product and _is_cast(v, readers)) or (not product and _products(v, readers) > 1):
            renamed[v] = Var(v.aval)
            found.append(new_jaxpr_eqn([v], [renamed[v]], optimization_barrier_p, {}, no_effects, eqn.source_info))
    if len(found) == len(eqns) and all(a is b for a, b in zip(eqns, jaxpr.eqns, strict=True)):
        return closed
    outvars = [v if isinstance(v, Literal) else renamed.get(v, v) for v in jaxpr.outvars]
    return ClosedJaxpr(jaxpr.replace(eqns=found, outvars=outvars), closed.consts)


def _widens(eqn) -> bool:
    """Return whether a product of narrow operands is wide."""
    return all(_is_narrow(v) for v in eqn.invars) and eqn.outvars[0].aval.dtype == np.float32


def _cast_behind(eqn) -> list:
    """Return a product that is as narrow as its operands, and the cast of its result."""
    (wide,) = eqn.outvars
    narrow, held = (Var(wide.aval.update(dtype=eqn.invars[0].aval.dtype)) for _ in range(2))
    params = {"new_dtype": wide.aval.dtype, "weak_type": False, "sharding": None}
    return [
        eqn.replace(outvars=[narrow], params={**eqn.params, "preferred_element_type": narrow.aval.dtype}),
        new_jaxpr_eqn([narrow], [held], optimization_barrier_p, {}, no_effects, eqn.source_info),
        new_jaxpr_eqn([held], [wide], jax.lax.convert_element_type_p, params, no_effects, eqn.source_info),
    ]


def _is_narrow(v) -> bool:
    return not isinstance(v, DropVar) and v.aval.ndim > 1 and v.aval.dtype in (jnp.bfloat16, np.float16)


def _is_cast(v: Var, readers: dict[Var, list]) -> bool:
    """Return whether a value is cast to a wider dtype, by itself or moved."""
    for eqn in readers.get(v, ()):
        name = eqn.primitive.name
        if name == "convert_element_type" and eqn.outvars[0].aval.dtype.itemsize > 2:
            return True
        if name in MOVES and _is_cast(eqn.outvars[0], readers):
            return True
    return False


def _products(v: Var, readers: dict[Var, list]) -> int:
    """Return the number of products that read a value, as it is or moved."""
    count = 0
    for eqn in readers.get(v, ()):
        name = eqn.primitive.name
        count += 1 if name in PRODUCTS else _products(eqn.outvars[0], readers) if name in MOVES else 0
    return count
