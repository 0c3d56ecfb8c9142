"""Ops of one tensor, element by element."""

from __future__ import annotations

from sbpjax.testing import call, op


def _unary(names: str, kinds: str = "fhi", low=None, high=None, **options) -> None:
    @op(names, **options)
    def make(g):
        return call(g.tensor(kinds=kinds, low=low, high=high, special=low is None))


_unary("exp exp2 expm1 sin cos sinh cosh tanh atan asinh sigmoid erf erfc sign abs square neg", "fhic")
