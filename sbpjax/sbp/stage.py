"""Stage-transfer primitive: `to_global` to another placement in a traced program, which ends a stage.

    h = self.front(x)                      # parameters on ranks 0 and 1
    h = h.to_global(placement=P1)          # stage_transfer: from here on ranks 2 and 3
    y = self.back(h)

It is the identity, so the same trace is also one sequential program. Its gradient goes the other way.
"""

from __future__ import annotations

from jax.interpreters import ad, batching, mlir

from sbpjax._core.jax_private import Primitive

from .placement import placement as Placement

stage_transfer_p = Primitive("stage_transfer")


def stage_transfer(x, source: Placement, target: Placement):
    """Return ``x`` on another placement.

    Args:
        x: a traced logical array of any shape.
        source: its placement.
        target: the new placement.
    """
    return stage_transfer_p.bind(x, source=source, target=target)


@stage_transfer_p.def_impl
def _impl(x, **_):
    return x


@stage_transfer_p.def_abstract_eval
def _abstract(x, **_):
    return x


def _transpose(cotangent, x, *, source, target):
    if type(cotangent) is ad.Zero:
        return [cotangent]
    return [stage_transfer_p.bind(cotangent, source=target, target=source)]


ad.deflinear2(stage_transfer_p, _transpose)
batching.defvectorized(stage_transfer_p)
mlir.register_lowering(stage_transfer_p, lambda ctx, x, **_: [x])
