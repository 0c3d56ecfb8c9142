"""Sharding rules of pointwise primitives: every dim may be split, and linear ones keep partial sums.

``x * y`` of a partial ``x`` and a broadcast ``y`` multiplies every summand: ``P,B → P``. That is exact up to rounding
for finite factors; a sum of ``(2, -1)`` times infinity is NaN summand by summand, as it is in any sum that is put
off.
"""

from __future__ import annotations

import jax.numpy as jnp

from sbpjax._core.jax_private import Literal
from sbpjax._core.programs.primitives import BARRIERS, CASTS, LINEAR, NONLINEAR, SUMS

from .table import B, P, Strategy, is_number, rule, same_dims


@rule(*NONLINEAR)
def plain(eqn, size: int) -> list[Strategy]:
    """Split S(d) on every operand; nothing partial."""
    return same_dims(eqn)


@rule(*LINEAR)
def linear(eqn, size: int) -> list[Strategy]:
    """Split S(d) → S(d) and keep P → P, on all operands."""
    return [*same_dims(eqn), Strategy((P,) * len(eqn.invars), (P,))]


@rule(*CASTS, "stop_gradient", "device_put", "sharding_constraint")
def cast(eqn, size: int) -> list[Strategy]:
    """Split as `linear`, but P only to a dtype as fine or finer: rounding every summand is not rounding the sum."""
    if eqn.invars[0].aval.shape != eqn.outvars[0].aval.shape or len(eqn.invars) != 1:
        return []
    found = same_dims(eqn)
    before, after = (v.aval.dtype for v in (eqn.invars[0], eqn.outvars[0]))
    exact = eqn.primitive.name != "bitcast_convert_type" and is_number(eqn.invars[0]) and is_number(eqn.outvars[0])
    if exact and (before == after or _is_exact_cast(before, after)):
        found.append(Strategy((P,), (P,)))
    return found


@rule(*SUMS)
def additive(eqn, size: int) -> list[Strategy]:
    """Split S(d),S(d) → S(d) and keep P,P → P; a broadcast operand becomes partial for free, on the first rank."""
    return [*same_dims(eqn), Strategy((P, P), (P,))]


@rule("mul")
def product(eqn, size: int) -> list[Strategy]:
    """Split S(d),S(d) → S(d); a partial factor times a broadcast one stays partial."""
    # A number in the program is never worth a partial sum.
    x, y = eqn.invars
    found = same_dims(eqn)
    found += [] if isinstance(x, Literal) else [Strategy((P, B), (P,))]
    return found if isinstance(y, Literal) else [*found, Strategy((B, P), (P,))]


@rule("div")
def quotient(eqn, size: int) -> list[Strategy]:
    """Split S(d),S(d) → S(d); keep P / B → P for inexact dtypes."""
    found = same_dims(eqn)
    # Integers round down: (1 + 1) / 2 is 1, and 1 / 2 + 1 / 2 is 0.
    linear = _inexact(eqn.outvars[0].aval.dtype) and not isinstance(eqn.invars[0], Literal)
    return [*found, Strategy((P, B), (P,))] if linear else found


@rule("select_n")
def select(eqn, size: int) -> list[Strategy]:
    """Split S(d) everywhere; with a broadcast condition, partial cases give a partial result."""
    return [*same_dims(eqn), Strategy((B,) + (P,) * (len(eqn.invars) - 1), (P,))]


@rule(*BARRIERS)
def barrier(eqn, size: int) -> list[Strategy]:
    """Keep the layout of each operand: all S(d) where the dim exists, or all P."""
    if len(eqn.invars) != len(eqn.outvars):
        return []
    ndim = max((len(v.aval.shape) for v in eqn.invars), default=0)
    found = []
    for dim in range(ndim):
        codes = tuple(dim if dim < len(v.aval.shape) and v.aval.shape[dim] > 1 else B for v in eqn.invars)
        found.append(Strategy(codes, codes))
    if all(is_number(v) for v in eqn.invars):
        found.append(Strategy((P,) * len(eqn.invars), (P,) * len(eqn.invars)))
    return found


def _is_exact_cast(before, after) -> bool:
    """Return whether every value of an inexact dtype is one of another."""
    if not (_inexact(before) and _inexact(after)):
        return False
    fine, finer = jnp.finfo(before), jnp.finfo(after)
    return finer.nmant >= fine.nmant and finer.nexp >= fine.nexp


def _inexact(dtype) -> bool:
    return jnp.issubdtype(dtype, jnp.inexact)
