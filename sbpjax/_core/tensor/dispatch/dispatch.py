"""Dispatch: runs an op the local, abstract, placed or traced way, by the kinds of its inputs.

    local     arrays on one device     one cached `jax.jit` call                 `dispatch.local`
    abstract  shapes without data      shapes alone                              `dispatch.abstract`
    placed    arrays on a placement    planned and compiled, see `global_ops`    `dispatch.placed`
    traced    tracers                  the op's function on logical tracers      `dispatch.traced`

Each way is a module with ``run(op, inputs, out_sbps)`` and the class of its tape nodes, whose ``backward`` goes the
same way back; the abstract way records as the local one.

`run` serves every op; `unary` and `binary` do the same without loops for the most frequent ops, and
fall back to it for anything but plain local tensors.
"""

from __future__ import annotations

import weakref
from typing import Any

import jax
import numpy as np

from sbpjax._core.jax_private import ArrayImpl
from sbpjax.errors import OpTypeError

from ..calls.op_errors import translate
from ..handle.mode import mode
from ..handle.tensor import ABSTRACT, LOCAL, OTHER, PLACED, TRACED, Tensor
from ..nodes.op_node import record_op
from . import abstract, local, placed, traced
from .local import LocalNode
from .op import Op, entry_of, op_of
from .scalars import hashable, scalar_array, wrap_input

_new = Tensor.__new__
_ARRAYS = (jax.Array, np.ndarray)
_ref = weakref.ref
_RUN = {LOCAL: local.run, OTHER: local.run, ABSTRACT: abstract.run, PLACED: placed.run, TRACED: traced.run}


def apply(fn, /, *inputs, **static) -> Any:
    """Run a pure function on tensors and return a tensor, or a tuple of tensors.

    Args:
        fn: a function of arrays in the global view, from `_core.ops`.
        inputs: tensors, Python or NumPy scalars, None.
        static: its attributes, see `hashable`.
    """
    return run(op_of(fn, tuple([(name, hashable(value)) for name, value in static.items()])), inputs)


def run(op: Op, inputs: tuple, out_sbps=None) -> Any:
    """Run an op on any inputs.

    Args:
        op: the op.
        inputs: tensors, Python or NumPy scalars, NumPy arrays, None.
        out_sbps: for global outputs, pins: an nd-sbp or None per output.
    """
    if mode.autocast is not None:
        op, inputs = mode.autocast.select_op(op, inputs)
    arrays: list = []
    recording = False
    for x in inputs:
        if isinstance(x, Tensor):
            if x._cell is not None and x._cell.stamp != x._seen:
                x._regenerate()
            if x._kind:
                break
            arrays.append(x._array)
            if x._edge is not None:
                recording = True
        elif x is None:
            arrays.append(None)
        elif isinstance(x, _ARRAYS):
            break
        else:
            arrays.append(scalar_array(x))
    else:
        return local.run_on(op, inputs, arrays, recording and mode.grad)
    return _run(op, inputs, out_sbps)


def _run(op: Op, inputs: tuple, out_sbps=None) -> Any:
    """Run an op on inputs of any kinds, as they are cast."""
    kind = LOCAL
    for x in inputs:
        if isinstance(x, Tensor):
            if x._cell is not None and x._cell.stamp != x._seen:
                x._regenerate()
            if x._kind > kind:
                kind = x._kind
        elif isinstance(x, _ARRAYS):
            return _run(op, tuple(map(wrap_input, inputs)), out_sbps)
    if kind == PLACED and mode.capture is not None:  # a constant of a program meets another
        kind = TRACED
    return _RUN[kind](op, inputs, out_sbps)


def _no_tensor(op: Op, a) -> OpTypeError:
    return OpTypeError(op.name, f"a {type(a).__name__}", "its input is a tensor", "sbpjax.tensor(value)")


def unary(op: Op, a: Tensor) -> Any:
    """Run `op` on one tensor, as `run(op, (a,))`, for a one-output op."""
    if mode.autocast is not None:
        (a,) = mode.autocast.inputs(op, (a,))
    try:
        # Read without a check of the type: almost all inputs are tensors, and an `isinstance` before every op costs
        # more than an exception for the others.
        kind = a._kind
    except AttributeError:
        raise _no_tensor(op, a) from None
    if kind:
        return _run(op, (a,))
    if a._cell is not None and a._cell.stamp != a._seen:
        a._regenerate()
    x = a._array
    try:
        out = op.call(x)
    except Exception as error:
        raise translate(error, op, (a,)) from None
    if out.__class__ is not ArrayImpl:  # in a trace
        return traced.run(op, (a,))
    t = _new(Tensor)
    t._array = out
    t._layout = t._edge = t._cell = t._meta = None
    t._idx = t._ver = 0
    t._kind = LOCAL
    edge = a._edge
    if edge is None or not mode.grad:
        return t
    entry = op.entries.get(x.aval)
    if entry is None:
        entry = op.entries[x.aval] = entry_of(op, (0,), (x.aval,))
    if not entry.diff_outs:
        return t
    if entry.keep:
        saved, check = (x,), op.check
        checks = (_ref(a), a._ver) if check == "inputs" else (_ref(t), 0) if check == "outputs" else ()
    else:
        saved = checks = ()
    t._edge = record_op(LocalNode, entry, (edge,), (a._idx,), saved, checks, None)
    return t


def binary(op: Op, a: Tensor, b) -> Any:
    """Run `op` on two inputs, as `run(op, (a, b))`, for a one-output op whose first input is a tensor."""
    if mode.autocast is not None:
        op, (a, b) = mode.autocast.select_op(op, (a, b))
    # By class, not by `isinstance`: bool is an int, but promotes otherwise, and takes the long way.
    if b.__class__ is float or b.__class__ is int:
        y = scalar_array(b)
        edge_b = None
    elif isinstance(b, Tensor) and not b._kind:
        if b._cell is not None and b._cell.stamp != b._seen:
            b._regenerate()
        y = b._array
        edge_b = b._edge
    else:
        return _run(op, (a, b))
    try:
        kind = a._kind
    except AttributeError:  # ``Tensor.__radd__(2, x)``
        raise _no_tensor(op, a) from None
    if kind:
        return _run(op, (a, b))
    if a._cell is not None and a._cell.stamp != a._seen:
        a._regenerate()
    x = a._array
    try:
        out = op.call(x, y)
    except Exception as error:
        raise translate(error, op, (a, b)) from None
    if out.__class__ is not ArrayImpl:  # in a trace
        return traced.run(op, (a, b))
    t = _new(Tensor)
    t._array = out
    t._layout = t._edge = t._cell = t._meta = None
    t._idx = t._ver = 0
    t._kind = LOCAL
    edge_a = a._edge
    if (edge_a is None and edge_b is None) or not mode.grad:
        return t
    key = (edge_a is None, edge_b is None, x.aval, y.aval)
    entry = op.entries.get(key)
    if entry is None:
        needs = tuple(i for i, e in enumerate((edge_a, edge_b)) if e is not None)
        entry = op.entries[key] = entry_of(op, needs, key[2:])
    if not entry.diff_outs:
        return t
    if edge_b is None:
        edges, idxs = (edge_a,), (a._idx,)
    elif edge_a is None:
        edges, idxs = (edge_b,), (b._idx,)
    else:
        edges, idxs = (edge_a, edge_b), (a._idx, b._idx)
    if entry.keep_all:
        saved = (x, y)
        number = b.__class__ is float or b.__class__ is int
        checks = (_ref(a), a._ver) if number else (_ref(a), a._ver, _ref(b), b._ver)
    elif entry.keep:
        first = entry.keep[0] == 0
        kept = a if first else b
        saved = (x if first else y,)
        checks = (_ref(kept), kept._ver) if isinstance(kept, Tensor) else ()
    else:
        saved = checks = ()
    t._edge = record_op(LocalNode, entry, edges, idxs, saved, checks, None)
    return t
