"""Which layouts come out, and what that moves, without compiling or running anything.

Within `plan_only` a global op is planned and its outputs are stand-ins with a shape and a dtype; thousands of
signatures take seconds. `pinned_bytes` is the least that any plan moves for the same expression if its outputs have to
lie as OneFlow's do: a bound from below of what OneFlow's own choice costs.
"""

from __future__ import annotations

import contextlib

import jax
import numpy as np

from sbpjax._core.compiler import conversions
from sbpjax._core.compiler.eager import global_ops
from sbpjax._core.planner import plan_exactly
from sbpjax._core.programs.normalise import normalise
from sbpjax._core.tensor.calls import bounds
from sbpjax._core.tensor.dispatch.traced import TracedLayout
from sbpjax._core.tensor.handle.tensor import Tensor, wrap_any
from sbpjax.sbp import algebra
from sbpjax.sbp.layout import layout_of


class NeedsValueError(Exception):
    """The op reads a value on the host (nonzero, masked_select): it cannot be planned without running."""


class Planned:
    """Stands in for a physical array."""

    def __init__(self, layout) -> None:
        self.layout = layout
        self.shape = layout.physical_shape
        self.dtype = layout.dtype
        self.ndim = len(self.shape)
        self.aval = jax.core.ShapedArray(self.shape, self.dtype)

    def _no_value(self, *_, **__):
        raise NeedsValueError

    __array__ = __bool__ = __int__ = __float__ = __index__ = addressable_data = _no_value

    @property
    def addressable_shards(self):
        raise NeedsValueError


@contextlib.contextmanager
def plan_only():
    """Plan global ops instead of running them; yields the list of their plans, in order."""
    plans: list = []
    kept = global_ops.execute, conversions.to_logical, bounds.parts_on_cpu
    cache: dict = {}

    def execute(fn, static, arrays, layouts, *, placement=None, out_sbps=None, donate=()):
        kinds = tuple(x if x is not None else global_ops._kind(a) for a, x in zip(arrays, layouts, strict=True))
        key = (fn, static, kinds, placement, out_sbps)
        if key not in cache:
            cache[key] = global_ops.compile_op(fn, static, arrays, layouts, placement, out_sbps)
        plans.append(cache[key].plan)
        return [Planned(x) for x in cache[key].layouts], cache[key].layouts

    def to_logical(array, layout):
        raise NeedsValueError

    global_ops.execute, conversions.to_logical, bounds.parts_on_cpu = execute, to_logical, lambda index: []
    try:
        yield plans
    finally:
        global_ops.execute, conversions.to_logical, bounds.parts_on_cpu = kept


def stand_in(shape, dtype, placement, codes) -> Tensor:
    """Return a global tensor without a value."""
    layout = layout_of(placement, codes, tuple(shape), np.dtype(dtype))
    return wrap_any(Planned(layout), layout)


def flat(result) -> list[Tensor]:
    """Return the tensors of a result: one, or a tuple or list of them."""
    return list(result) if isinstance(result, (tuple, list)) else [result]


def program_of(evaluate, inputs, placement):
    """Return the one flat program of an expression; ``inputs`` are ``(shape, dtype)`` pairs."""

    def whole(*tracers):
        tensors = [wrap_any(t, TracedLayout(placement)) for t in tracers]
        return [t._fresh()._array for t in flat(evaluate(*tensors))]

    return normalise(jax.make_jaxpr(whole)(*[jax.ShapeDtypeStruct(tuple(s), d) for s, d in inputs]))


def pinned_bytes(program, placement, in_codes, out_codes) -> int:
    """Return the bytes of the cheapest plan whose outputs lie as ``out_codes``."""
    return plan_exactly(program, placement.hierarchy, tuple(in_codes), tuple(out_codes)).bytes


__all__ = ["NeedsValueError", "algebra", "flat", "pinned_bytes", "plan_only", "program_of", "stand_in"]
