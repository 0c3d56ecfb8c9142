"""Batched ``while`` loops: rewrites the per-row condition that `jax.vmap` makes into a single bool.

Such a loop turns as long as any row goes on, and a row that has come to its end keeps its values. XLA has no such loop,
and JAX writes the ``any`` and the ``select`` only where it lowers one; planning sees them here, so that the rows may be
split over devices.
"""

from __future__ import annotations

import jax
from jax import lax

from sbpjax._core.jax_private import jaxpr_as_fun


def with_one_condition(eqn):
    """Return a ``while`` equation whose condition has no dims, computing the same; others as they are."""
    params = eqn.params
    test, step = params["cond_jaxpr"], params["body_jaxpr"]
    rows = test.out_avals[0].shape
    if not rows:
        return eqn
    nc, nb = params["cond_nconsts"], params["body_nconsts"]
    goes_on, moved = jaxpr_as_fun(test), jaxpr_as_fun(step)

    def condition(*operands):
        (going,) = goes_on(*operands)
        return lax.reduce_or(going, tuple(range(len(rows))))

    def body(*operands):
        carry = operands[nc + nb :]
        (going,) = goes_on(*operands[:nc], *carry)
        return [
            lax.select_n(lax.broadcast_in_dim(going, old.shape, tuple(range(len(rows)))), old, new)
            for old, new in zip(carry, moved(*operands[nc:]), strict=True)
        ]

    avals = [v.aval for v in eqn.invars]
    changed = {
        "cond_jaxpr": jax.make_jaxpr(condition)(*avals[:nc], *avals[nc + nb :]),
        "body_jaxpr": jax.make_jaxpr(body)(*avals),
        "body_nconsts": nc + nb,  # the condition's constants are read by the body too
    }
    return eqn.replace(params=params | changed, invars=[*eqn.invars[:nc], *eqn.invars])
