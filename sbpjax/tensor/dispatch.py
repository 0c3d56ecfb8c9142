"""How an op on tensors runs: on one device, on a placement, or inside a trace.

Local tensors run one cached `jax.jit` call per op. Global tensors run through `sbpjax.sbp.eager.execute`, which plans
and compiles the op for the layouts it meets. When any payload is a JAX tracer, the op's function is called on logical
tracers, and the whole program is planned later. All three ways record on the same tape.

`run` serves every op; `unary` and `binary` are the same thing without loops for the ops a program calls most, and
fall back to `run` for anything but plain local tensors.
"""

from __future__ import annotations

import weakref
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax._src.array import ArrayImpl  # `type(x) is ArrayImpl` costs a third of isinstance(x, jax.Array)
from jax.core import Tracer

from sbpjax.autograd.node import OpNode, sequence
from sbpjax.errors import MixedTensorError, OpTypeError, message
from sbpjax.sbp.abstract import Abstract

from .failure import translate
from .mode import mode
from .op import Op, entry_of, op_of
from .tensor import Tensor, attach

_new = Tensor.__new__
_new_node = OpNode.__new__
_ref = weakref.ref


def wrap(array) -> Tensor:
    """Return a plain local tensor without grad over an array."""
    t = _new(Tensor)
    t._array = array
    t._layout = t._edge = t._cell = t._meta = None
    t._idx = t._ver = 0
    t._plain = True
    return t


def wrap_any(array, layout=None) -> Tensor:
    """Return a tensor over any payload: a local array, a physical array with its layout, or a tracer."""
    t = wrap(array)
    t._layout = layout
    t._plain = layout is None and array.__class__ is ArrayImpl
    return t


def restore(array, layout, edge, idx: int) -> Tensor:
    """Return a tensor that sits on the tape where a saved one sat."""
    t = wrap_any(array, layout)
    t._edge = edge
    t._idx = idx
    return t


def apply(fn, inputs, static: tuple = ()) -> Any:
    """Run a pure function on tensors and return a tensor, or a tuple of tensors.

    Args:
        fn: a function of arrays in the global view, from `sbpjax.ops`.
        inputs: tensors, Python or NumPy scalars, None.
        static: ``(name, value)`` pairs of hashable attributes.
    """
    return run(op_of(fn, static), inputs)


# ---------------------------------------------------------------------------------------------------------- scalars

_scalars: dict[type, dict] = {bool: {}, int: {}, float: {}, complex: {}}
_MAX_SCALARS = 4096


def scalar_array(value):
    """Return a number as a weakly typed 0-d array; the common ones are kept on the device."""
    cls = value.__class__
    table = _scalars.get(cls)
    if table is None:
        if isinstance(value, np.generic):
            return scalar_array(value.item())
        for base in (bool, int, float, complex):  # also their subclasses
            if isinstance(value, base):
                number: Any = value
                return scalar_array(base(number))
        raise OpTypeError(
            message(
                "an op on tensors and numbers",
                f"a {cls.__name__}",
                "inputs of an op are tensors and numbers",
                "sbpjax.tensor(value) makes a tensor of lists and arrays",
            )
        )
    found = table.get(value)
    if found is None:
        with jax.ensure_compile_time_eval():  # an array also within a trace, since it outlives that
            found = jnp.asarray(value)
        if len(table) >= _MAX_SCALARS:
            table.clear()
        if value != 0 or str(value) == str(cls(0)):  # -0.0 == 0.0 must not share an entry
            table[value] = found
    elif value == 0 and str(value) != str(cls(0)):
        found = jnp.asarray(value)
    return found


# ---------------------------------------------------------------------------------------------------- the local way


def unary(op: Op, a: Tensor) -> Any:
    """`run(op, (a,))` for a one-output op."""
    if mode.autocast is not None:
        (a,) = mode.autocast.inputs(op, (a,))
    try:
        plain = a._plain
    except AttributeError:
        rule = "its input is a tensor"
        raise OpTypeError(message(op.name, f"a {type(a).__name__}", rule, "sbpjax.tensor(value)")) from None
    if not plain:
        return run(op, (a,))
    if a._cell is not None and a._cell.stamp != a._seen:
        refresh(a)
    x = a._array
    try:
        out = op.call(x)
    except Exception as error:
        raise translate(error, op, (a,)) from None
    if out.__class__ is not ArrayImpl:  # in a trace
        return traced.run_traced(op, (a,))
    t = _new(Tensor)
    t._array = out
    t._layout = t._cell = t._meta = None
    t._idx = t._ver = 0
    t._plain = True
    edge = a._edge
    if edge is None or not mode.grad:
        t._edge = None
        return t
    entry = op.entries.get(x.aval)
    if entry is None:
        entry = op.entries[x.aval] = entry_of(op, (0,), (x.aval,))
    if not entry.diff_outs:
        t._edge = None
        return t
    node = _new_node(OpNode)
    node.entry = entry
    node.n_out = 1
    node.edges = (edge,)
    node.idxs = (a._idx,)
    node.hooks = node.layouts = node.in_layouts = None
    node.seq = sequence()
    if entry.keep:
        node.saved = (x,)
        check = op.check
        node.checks = (_ref(a), a._ver) if check == "inputs" else (_ref(t), 0) if check == "outputs" else ()
    else:
        node.saved = node.checks = ()
    t._edge = node
    return t


def binary(op: Op, a: Tensor, b) -> Any:
    """`run(op, (a, b))` for a one-output op whose first input is a tensor."""
    if mode.autocast is not None:
        a, b = mode.autocast.inputs(op, (a, b))
    if b.__class__ is float or b.__class__ is int:
        y = scalar_array(b)
        edge_b = None
    elif isinstance(b, Tensor) and b._plain:
        if b._cell is not None and b._cell.stamp != b._seen:
            refresh(b)
        y = b._array
        edge_b = b._edge
    else:
        return run(op, (a, b))
    if not a._plain:
        return run(op, (a, b))
    if a._cell is not None and a._cell.stamp != a._seen:
        refresh(a)
    x = a._array
    try:
        out = op.call(x, y)
    except Exception as error:
        raise translate(error, op, (a, b)) from None
    if out.__class__ is not ArrayImpl:  # in a trace
        return traced.run_traced(op, (a, b))
    t = _new(Tensor)
    t._array = out
    t._layout = t._cell = t._meta = None
    t._idx = t._ver = 0
    t._plain = True
    edge_a = a._edge
    if (edge_a is None and edge_b is None) or not mode.grad:
        t._edge = None
        return t
    key = (edge_a is None, edge_b is None, x.aval, y.aval)
    entry = op.entries.get(key)
    if entry is None:
        needs = tuple(i for i, e in enumerate((edge_a, edge_b)) if e is not None)
        entry = op.entries[key] = entry_of(op, needs, key[2:])
    if not entry.diff_outs:
        t._edge = None
        return t
    node = _new_node(OpNode)
    node.entry = entry
    node.n_out = 1
    if edge_b is None:
        node.edges = (edge_a,)
        node.idxs = (a._idx,)
    elif edge_a is None:
        node.edges = (edge_b,)
        node.idxs = (b._idx,)
    else:
        node.edges = (edge_a, edge_b)
        node.idxs = (a._idx, b._idx)
    node.hooks = node.layouts = node.in_layouts = None
    node.seq = sequence()
    if entry.keep_all:
        node.saved = (x, y)
        number = b.__class__ is float or b.__class__ is int
        node.checks = (_ref(a), a._ver) if number else (_ref(a), a._ver, _ref(b), b._ver)
    elif entry.keep:
        first = entry.keep[0] == 0
        kept = a if first else b
        node.saved = (x if first else y,)
        node.checks = (_ref(kept), kept._ver) if isinstance(kept, Tensor) else ()
    else:
        node.saved = node.checks = ()
    t._edge = node
    return t


def run(op: Op, inputs: tuple, out_sbps=None) -> Any:
    """Run an op on any inputs.

    Args:
        op: the op.
        inputs: tensors, Python or NumPy scalars, NumPy arrays, None.
        out_sbps: for global outputs, pins: an nd-sbp or None per output.
    """
    if mode.autocast is not None:
        inputs = mode.autocast.inputs(op, inputs)
    arrays = []
    recording = False
    for x in inputs:
        if isinstance(x, Tensor):
            if not x._plain:
                return _run_special(op, inputs, out_sbps)
            if x._cell is not None and x._cell.stamp != x._seen:
                refresh(x)
            arrays.append(x._array)
            if x._edge is not None:
                recording = True
        elif x is None:
            arrays.append(None)
        elif isinstance(x, jax.Array):
            return _run_special(op, inputs, out_sbps)
        elif isinstance(x, np.ndarray):
            arrays.append(jnp.asarray(x))
        else:
            arrays.append(scalar_array(x))
    return _run_local(op, inputs, arrays, recording and mode.grad)


def _run_local(op: Op, inputs: tuple, arrays: list, recording: bool):
    try:
        out = op.call(*arrays)
    except Exception as error:
        raise translate(error, op, inputs) from None
    if out.__class__ is ArrayImpl:
        t = _new(Tensor)
        t._array = out
        t._layout = t._edge = t._cell = t._meta = None
        t._idx = t._ver = 0
        t._plain = True
        if recording:
            _record(op, inputs, arrays, (t,))
        return t
    alone = isinstance(out, Tracer)
    if (alone or any(isinstance(o, Tracer) for o in out)) and any(isinstance(x, Tensor) for x in inputs):
        return traced.run_traced(op, inputs)  # in a trace an op on constants gives a tracer too
    outs = (wrap_any(out),) if alone else tuple([wrap_any(o) for o in out])
    if recording:
        _record(op, inputs, arrays, outs)
    return outs[0] if alone else outs


def _record(op: Op, inputs: tuple, arrays: list, outs: tuple) -> None:
    """Put a local op on the tape; what it saves is what `Entry` says that its backward reads."""
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
    if not entry.diff_outs:
        return
    node = _new_node(OpNode)
    node.entry = entry
    node.n_out = entry.n_out
    node.edges = edges
    node.idxs = idxs
    node.hooks = node.layouts = node.in_layouts = None
    node.seq = sequence()
    if entry.keep:
        watching = op.check == "inputs"
        saved, checks = [], []
        for i in entry.keep:
            saved.append(arrays[i])
            if watching:
                x = inputs[i]
                if isinstance(x, Tensor):
                    checks.append(_ref(x))
                    checks.append(x._ver)
        node.saved = saved
        node.checks = checks if op.check != "outputs" else [_ref(outs[0]), 0]
    else:
        node.saved = node.checks = ()
    for i in entry.diff_outs:
        t = outs[i]
        t._edge = node
        t._idx = i


def checks_of(op: Op, entry, inputs: tuple, outs: tuple) -> tuple:
    """Return ``(ref, version, ref, version, …)`` of the tensors that must not change before backward."""
    if op.check == "none" or not entry.keep:
        return ()
    watched = outs if op.check == "outputs" else [inputs[i] for i in entry.keep]
    checks = []
    for x in watched:
        if isinstance(x, Tensor):
            checks += [_ref(x), x._ver]
    return tuple(checks)


def backward_call(op: Op, saved: tuple, cotangents: list, further: list | tuple = ()):
    """Run a compiled backward on local arrays; `further` are inputs behind the cotangents."""
    arrays = []
    for g in cotangents:
        if g._cell is not None or not g._plain:
            g = plain(g)
        arrays.append(g._array)
    try:
        return op.call(*saved, *arrays, *further)
    except TypeError:
        if Abstract not in map(type, (*saved, *arrays)):
            raise
        return list(abstract.shapes_of(op, [*saved, *arrays]))


def plain(x: Tensor) -> Tensor:
    """Return a local tensor whose payload is up to date, for a caller that reads `_array`."""
    if x._layout is not None:
        raise mixed("backward of a local op with a global gradient", (x,))
    if x._cell is not None and x._cell.stamp != x._seen:
        refresh(x)
    return x


def refresh(x: Tensor) -> None:
    """Bring a tensor that shares storage up to date after a write through another one."""
    x._regenerate()


# --------------------------------------------------------------------------------------------- global and traced ways


def _run_special(op: Op, inputs: tuple, out_sbps=None):
    tracing = without_data = False
    layout = None
    fixed = []
    for x in inputs:
        if isinstance(x, Tensor):
            if x._cell is not None and x._cell.stamp != x._seen:
                refresh(x)
            if isinstance(x._array, Tracer):
                tracing = True
            elif x._array.__class__ is Abstract:
                without_data = True
            if x._layout is not None:
                layout = x._layout
        elif isinstance(x, Tracer):
            tracing, x = True, wrap_any(x)
        elif isinstance(x, jax.Array):
            x = wrap_any(x)
        elif isinstance(x, np.ndarray):
            x = wrap(jnp.asarray(x))
        fixed.append(x)
    inputs = tuple(fixed)
    if tracing or (layout is not None and mode.lift is not None):
        return traced.run_traced(op, inputs)
    if layout is not None:
        return on_placement.run_global(op, inputs, layout.placement, out_sbps)
    arrays = [x._array if isinstance(x, Tensor) else None if x is None else scalar_array(x) for x in inputs]
    recording = mode.grad and any(isinstance(x, Tensor) and x._edge is not None for x in inputs)
    if without_data:
        return abstract.run_local(op, inputs, arrays, recording)
    return _run_local(op, inputs, arrays, recording)


def mixed(asked: str, inputs) -> MixedTensorError:
    """Return the error for inputs that live on different placements, or are partly local."""
    seen, target = [], None
    for i, x in enumerate(x for x in inputs if isinstance(x, Tensor)):
        if x._layout is None:
            seen.append(f"input {i}: local {tuple(x.shape)} on {x.device}")
        else:
            seen.append(f"input {i}: global {tuple(x.shape)} on {x.placement!r}")
            target = target or x._layout
    if target is None:
        fix = "move the inputs to one device with x.to(device)"
    else:
        fix = _joining(target, any(x._layout is None for x in inputs if isinstance(x, Tensor)))
    return MixedTensorError(
        message(
            asked, "; ".join(seen), "all inputs of one op are local, or lie on one placement (hierarchy included)", fix
        )
    )


def _joining(target, is_local: bool) -> str:
    """Return the line that brings an input to where the others lie."""
    count = len(target.placement.hierarchy)
    where, alike = repr(target.placement), ", ".join(["sbpjax.sbp.broadcast"] * count)
    if not is_local or not target.placement.spans_processes:
        return f"x.to_global({where}, [{alike}])  # for each input that is not there yet"
    own = ", ".join(["sbpjax.sbp.split(0)", *["sbpjax.sbp.broadcast"] * (count - 1)])
    return (
        f"x.to_global({where}, [{own}]) where each process has its own rows (a batch), "
        f"x.to_global({where}, [{alike}]) where all have the same values"
    )


attach(_mixed=staticmethod(mixed))

# At the end, since they build on this module; the ways that are not the local one are called through them.
from . import abstract, on_placement, traced  # noqa: E402
