"""Local execution of an op: one cached `jax.jit` call on the arrays of one device, and another for its backward.

An op saves the inputs that its backward reads, see `Entry`. Where JAX traces without the tensors' knowledge, as in a
``jax.jit`` of the user's own, a jitted call of concrete arrays gives a tracer: such an op goes the traced way.
"""

from __future__ import annotations

from typing import Any

from jax.core import Tracer

from sbpjax._core.jax_private import ArrayImpl
from sbpjax.sbp.abstract import Abstract

from ..calls.op_errors import mixed_error, translate
from ..handle.mode import mode
from ..handle.tensor import LOCAL, Tensor, wrap, wrap_any
from ..nodes.op_node import OpNode, record_op, saved_payloads_of
from . import traced
from .op import Op, entry_of
from .scalars import scalar_array

_new = Tensor.__new__


def arrays_of(inputs: tuple) -> tuple[list, bool]:
    """Return the arrays of local inputs, and whether an op on them is recorded."""
    arrays: list = []
    recording = False
    for x in inputs:
        if isinstance(x, Tensor):
            arrays.append(x._array)
            if x._edge is not None:
                recording = True
        else:
            arrays.append(None if x is None else scalar_array(x))
    return arrays, recording and mode.grad


def run(op: Op, inputs: tuple, out_sbps=None) -> Any:
    """Run an op on local tensors and numbers."""
    return run_on(op, inputs, *arrays_of(inputs))


def run_on(op: Op, inputs: tuple, arrays: list, recording: bool) -> Any:
    """Run an op on the arrays of local tensors and numbers."""
    try:
        out = op.call(*arrays)
    except Exception as error:
        raise translate(error, op, inputs) from None
    if out.__class__ is ArrayImpl:
        t = _new(Tensor)  # `wrap`, without a call
        t._array = out
        t._layout = t._edge = t._cell = t._meta = None
        t._idx = t._ver = 0
        t._kind = LOCAL
        if recording:
            record_local_op(op, inputs, arrays, (t,))
        return t
    alone = isinstance(out, Tracer)
    # A jit of the user's own traces ops on concrete arrays too (omnistaging), and their results are tracers. Run again
    # the traced way: the equation that the call has left reads nothing and is dropped.
    if (alone or any(isinstance(o, Tracer) for o in out)) and any(isinstance(x, Tensor) for x in inputs):
        return traced.run(op, inputs)
    outs = (wrap_any(out),) if alone else tuple([wrap_any(o) for o in out])
    if recording:
        record_local_op(op, inputs, arrays, outs)
    return outs[0] if alone else outs


def record_local_op(op: Op, inputs: tuple, arrays: list, outs: tuple) -> None:
    """Put a local op on the tape."""
    edges, idxs, needs = [], [], []
    for i, x in enumerate(inputs):
        if isinstance(x, Tensor) and x._edge is not None:
            needs.append(i)
            edges.append(x._edge)
            idxs.append(x._idx)
    key = (*needs, *[None if a is None else a.aval for a in arrays])
    entry = op.entries.get(key)
    if entry is None:
        avals = tuple([None if a is None else a.aval for a in arrays])
        entry = op.entries[key] = entry_of(op, tuple(needs), avals)
    if entry.diff_outs:
        saved, checks = saved_payloads_of(op, entry.keep, inputs, arrays, outs) if entry.keep else ((), ())
        record_op(LocalNode, entry, edges, idxs, saved, checks, outs)


class LocalNode(OpNode):
    """The tape's node of a local op."""

    __slots__ = ()

    def backward(self, grads: list, create_graph: bool) -> tuple:
        saved, entry = self.unpack_saved(), self.entry
        op, cotangents = self.program(grads)
        if op is None:
            return (None,) * len(self.edges)
        # A compiled program would copy a cotangent that it only hands on: backward of an addition is no program at
        # all.
        if entry.passed is None or op is not entry.first:
            return _tensors(_call(op, saved, cotangents))
        # some gradients are cotangents as they come; the program computes the others
        rest = iter(() if entry.rest is None else _call(entry.rest, saved, cotangents))
        return tuple([wrap_any(next(rest) if k is None else _array(cotangents[k])) for k in entry.passed])

    def backward_onto(self, grads: list, places: tuple[int, ...], held: list) -> tuple:
        """Return `backward` of an op of one output, with arrays added to the gradients at ``places``."""
        return _tensors(_call(self.entry.accumulating_backward(places), self.unpack_saved(), grads, held))


def _call(op: Op, saved: tuple, cotangents: list, further: list | tuple = ()):
    """Run a compiled backward; `further` are inputs after the cotangents."""
    arrays = []
    for g in cotangents:
        arrays.append(_array(g) if g._cell is not None or g._kind else g._array)
    try:
        return op.call(*saved, *arrays, *further)
    # A payload without data is detected here, by JAX's error, since a check would cost every backward of every op.
    except TypeError:
        if Abstract not in map(type, (*saved, *arrays)):
            raise
        return list(op.without_data([*saved, *arrays]))


def _array(g: Tensor):
    """Return a gradient's array, up to date."""
    if g._layout is not None:
        raise mixed_error("backward of a local op with a global gradient", (g,))
    return g._fresh()._array


def _tensors(arrays) -> tuple:
    make = wrap if arrays.__class__ is tuple else wrap_any  # a list is without data
    return tuple([make(a) for a in arrays])
