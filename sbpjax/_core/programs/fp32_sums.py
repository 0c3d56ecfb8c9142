"""Float32 accumulation for sums of 16-bit floats.

XLA:CPU adds up the dims of a bfloat16 array one loop inside the other, and rounds after each of the outer ones. The
gradient of a bias of a convolution, a sum over (N, H, W), stops growing that way:

    reduce_sum bf16[2, 2, 64, 64] over (0, 2, 3) of ones → 1024, where the sum is 8192 (jax 0.10)

`with_wide_sums` casts the terms, which is part of the same loop, and the result back.
"""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jax.core import ShapedArray

from sbpjax._core.jax_private import ClosedJaxpr, Var

from .fp32_gradients import make_cast
from .rewrite import rewrite_program

_NARROW = frozenset(map(np.dtype, (jnp.bfloat16, np.float16)))


def with_wide_sums(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Return a program whose sums of 16-bit floats are float32 until they are whole; the same one if it has none."""
    return rewrite_program(closed, _change)


def _change(closed: ClosedJaxpr, inside: Callable) -> ClosedJaxpr:
    jaxpr = closed.jaxpr
    eqns: list = []
    for eqn in jaxpr.eqns:
        if eqn.primitive.name == "reduce_sum" and eqn.invars[0].aval.dtype in _NARROW:
            terms, (total,) = eqn.invars[0], eqn.outvars
            wide = [Var(ShapedArray(v.aval.shape, np.dtype(np.float32))) for v in (terms, total)]
            eqns.append(make_cast(eqn, terms, wide[0], np.float32))
            eqns.append(eqn.replace(invars=[wide[0]], outvars=[wide[1]]))
            eqns.append(make_cast(eqn, wide[1], total, total.aval.dtype))
        else:
            eqns.append(inside(eqn))
    if len(eqns) == len(jaxpr.eqns) and all(a is b for a, b in zip(eqns, jaxpr.eqns, strict=True)):
        return closed
    jaxpr = jaxpr.replace(eqns=eqns)
    return jaxpr if closed is closed.jaxpr else ClosedJaxpr(jaxpr, closed.consts)
