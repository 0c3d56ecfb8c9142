"""`to_global` inside a traced program: a primitive that is the identity and pins a layout.

The planner must give its output the wanted nd-sbp; everything else about it is free. Its gradient is pinned to
``grad_sbp``, or leaves the choice to the planner. On an axis whose entry is `algebra.FREE` it pins nothing.
"""

from __future__ import annotations

from jax.interpreters import ad, batching, mlir

from sbpjax._core.jax_private import Primitive

from . import algebra
from .placement import placement as Placement

to_sbp_p = Primitive("to_sbp")


def to_sbp(x, placement: Placement, sbp, grad_sbp=None):
    """Return ``x``, pinned to an nd-sbp where the surrounding program is planned.

    Args:
        x: a traced logical array of any shape.
        placement: where the program runs.
        sbp: the nd-sbp of the result.
        grad_sbp: the nd-sbp of its gradient; None leaves it to the planner.
    """
    codes = algebra.parse(sbp, placement, x.ndim, allow_free=True)
    grad_codes = None if grad_sbp is None else algebra.parse(grad_sbp, placement, x.ndim, allow_free=True)
    return to_sbp_p.bind(x, placement=placement, codes=codes, grad_codes=grad_codes)


@to_sbp_p.def_impl
def _impl(x, **_):
    return x


@to_sbp_p.def_abstract_eval
def _abstract(x, **_):
    return x


def _transpose(cotangent, x, *, placement, codes, grad_codes):
    if grad_codes is None or type(cotangent) is ad.Zero:
        return [cotangent]
    return [to_sbp_p.bind(cotangent, placement=placement, codes=grad_codes, grad_codes=codes)]


ad.deflinear2(to_sbp_p, _transpose)
batching.defvectorized(to_sbp_p)
mlir.register_lowering(to_sbp_p, lambda ctx, x, **_: [x])
