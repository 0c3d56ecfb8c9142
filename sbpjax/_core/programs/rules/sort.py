"""Sharding rules of sort and top-k: every dim but the sorted one may be split."""

from __future__ import annotations

from sbpjax._core.programs.primitives import SELECTIONS

from .table import Strategy, other_dims, rule


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
