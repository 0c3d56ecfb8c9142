"""Values of 16 bits that are stored as such: barriers that keep XLA from widening them on an accelerator.

XLA's fusion works on what it thinks best for one kernel, and it takes a cast to float32 for free:

    up (8192, 4096) bf16 → cast → gelu' in float32 → cast → bf16 → two products and a sum

It lets the product that makes ``up`` write float32, twice the bytes, and stores the result of gelu' in float32 since the
sum wants it so; two later kernels read that and cast it again. On an H100 these bytes are a tenth of a GPT-2's step.
`stored_narrow` puts an `optimization_barrier` on such values: results of products that are cast, and what several
products read. A barrier is nothing in the compiled program; it only says that the value exists in its own dtype.
"""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jax._src.lax.lax import optimization_barrier_p  # no public name

from sbpjax.world.jaxprs import ClosedJaxpr, DropVar, Literal, Var, new_jaxpr_eqn, no_effects

from .primitives import BARRIERS, MOVES, PRODUCTS
from .rewrite import rewritten


def stored_narrow(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Return a program with barriers on its 16-bit values that products write or read several times."""
    return rewritten(closed, _change)


def _change(closed: ClosedJaxpr, inside: Callable) -> ClosedJaxpr:
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
        found.append(eqn)
        if eqn.primitive.name in MOVES | BARRIERS or len(eqn.outvars) != 1 or not _is_narrow(eqn.outvars[0]):
            continue
        (v,) = eqn.outvars
        product = eqn.primitive.name in PRODUCTS
        if (product and _is_cast(v, readers)) or (not product and _products(v, readers) > 1):
            renamed[v] = Var(v.aval)
            found.append(new_jaxpr_eqn([v], [renamed[v]], optimization_barrier_p, {}, no_effects, eqn.source_info))
    if not renamed and all(a is b for a, b in zip(eqns, jaxpr.eqns, strict=True)):
        return closed
    outvars = [v if isinstance(v, Literal) else renamed.get(v, v) for v in jaxpr.outvars]
    return ClosedJaxpr(jaxpr.replace(eqns=found, outvars=outvars), closed.consts)


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
    """Return how many products read a value, as it is or moved."""
    count = 0
    for eqn in readers.get(v, ()):
        name = eqn.primitive.name
        count += 1 if name in PRODUCTS else _products(eqn.outvars[0], readers) if name in MOVES else 0
    return count
