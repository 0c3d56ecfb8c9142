"""Global execution of an op on tensors of a placement, and its backward.

`_core.compiler.eager.global_ops.execute` takes the payloads, their layouts and the function; the layouts of the
results are its plan's choice. A number or a 0-d local tensor among the inputs is passed unchanged; the gradient of
such a local tensor is local again.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import jax
import numpy as np
from jax.core import ShapedArray

from sbpjax._core.compiler import conversions
from sbpjax._core.compiler.eager import disk_cache, global_ops
from sbpjax._core.runtime.ambient_mesh import hide_mesh
from sbpjax.sbp import algebra
from sbpjax.sbp.boxing_marker import to_sbp

from ..calls.op_errors import mixed_error, translate
from ..handle.mode import mode
from ..handle.tensor import TRACED, Tensor, wrap_any
from ..nodes.op_node import OpNode, record_op, saved_payloads_of
from .op import entry_of, struct_of
from .scalars import scalar_array
from .traced import TracedLayout


def aval_of(x):
    """Return the logical aval of an input: a global or local tensor, a number, None."""
    if x is None:
        return None
    if not isinstance(x, Tensor):
        return scalar_array(x).aval
    layout = x._layout
    if layout is None:
        return x._array.aval
    # Layouts are interned, so this is made once per layout and not once per op.
    found = layout.__dict__.get("aval")
    if found is None:
        found = layout.__dict__["aval"] = ShapedArray(layout.shape, layout.dtype)
    return found


_conversion: ContextVar[Callable | None] = ContextVar("conversion", default=None)


@contextmanager
def converting_locals(convert: Callable):
    """Let local tensors without grad be inputs beside global ones: ``convert(x, placement)`` makes each global."""
    token = _conversion.set(convert)
    try:
        yield
    finally:
        _conversion.reset(token)


def _convert_locals(op, inputs: tuple) -> tuple:
    convert, tensors = _conversion.get(), [x for x in inputs if isinstance(x, Tensor)]
    there = next((x._layout.placement for x in tensors if x._layout is not None), None)
    if convert is None or there is None or any(x._layout is None and x.requires_grad for x in tensors):
        raise mixed_error(op.name, inputs)
    return tuple(convert(x, there) if isinstance(x, Tensor) and x._layout is None else x for x in inputs)


def run(op, inputs: tuple, out_sbps=None):
    """Run an op of which at least one input is global; see `_core.tensor.dispatch.dispatch.run`."""
    arrays, layouts = [], []
    placement, recording = None, False
    for x in inputs:
        if isinstance(x, Tensor):
            layout = x._layout
            if layout is None:
                # A 0-d tensor is passed like a number; the layout of one with dims is not known.
                if x._array.ndim:
                    return run(op, _convert_locals(op, inputs), out_sbps)
            elif placement is None:
                placement = layout.placement
            # Identity first: placements are compared with every op, and their equality compares arrays of ranks.
            elif layout.placement is not placement and layout.placement != placement:
                raise mixed_error(op.name, inputs)
            arrays.append(x._array)
            layouts.append(layout)
            if x._edge is not None:
                recording = True
        else:
            # A NumPy number has a dtype of its own and would promote; a Python number takes the tensor's.
            arrays.append(x.item() if isinstance(x, np.generic) else x)
            layouts.append(None)
    try:
        # `op.traced` is one object per op, with its attributes bound: it is the key of the program.
        outs, out_layouts = global_ops.execute(op.traced, (), arrays, layouts, out_sbps=out_sbps)
    except Exception as error:
        raise translate(error, op, inputs) from None
    results = tuple([wrap_any(a, lay) for a, lay in zip(outs, out_layouts)])
    if recording and mode.grad:
        single = _tape(op, inputs, arrays, layouts, results).single
    else:
        # Results come as a flat list; whether the function returned a tuple is determined once per op.
        single = _single[op] if op in _single else _is_single(op, inputs)
    return results[0] if single else results


_single: dict = {}


@hide_mesh
def _is_single(op, inputs: tuple) -> bool:
    """Return whether the op returns one array rather than a tuple; the same for all its inputs."""
    out = jax.eval_shape(op.traced, *[struct_of(aval_of(x)) for x in inputs])
    _single[op] = not isinstance(out, (tuple, list))
    return _single[op]


def _tape(op, inputs: tuple, arrays, layouts, outs: tuple):
    """Put a global op on the tape and return its backward entry."""
    needs = tuple([i for i, x in enumerate(inputs) if isinstance(x, Tensor) and x._edge is not None])
    entry = entry_of(op, needs, tuple([aval_of(x) for x in inputs]), on_disk=True)
    if entry.diff_outs:
        edges, idxs = tuple([inputs[i]._edge for i in needs]), tuple([inputs[i]._idx for i in needs])
        saved, checks = saved_payloads_of(op, entry.keep, inputs, arrays, outs)
        kept = tuple([layouts[i] for i in entry.keep])
        node: Any = record_op(PlacedNode, entry, edges, idxs, saved, checks, outs, kept)
        node.layouts, node.in_layouts = kept, tuple([layouts[i] for i in needs])
    return entry


class PlacedNode(OpNode):
    """The tape's node of a global op.

    Attributes:
        layouts: those of the saved payloads.
        in_layouts: those of the inputs that get a gradient; None for a local one.
    """

    __slots__ = ("in_layouts", "layouts")

    in_layouts: Any
    layouts: Any

    def backward(self, grads: list, create_graph: bool) -> tuple:
        arrays, layouts = list(self.unpack_saved()), list(self.layouts)
        op, cotangents = self.program(grads)
        if op is None:
            return (None,) * len(self.edges)
        for g in cotangents:
            arrays.append(g._fresh()._array)
            layouts.append(g._layout)
        pins = _pins(op, arrays, layouts, self.in_layouts)
        outs, found = global_ops.execute(op.fn, (), arrays, layouts, out_sbps=pins)
        return self.convert_grads([wrap_any(a, lay) for a, lay in zip(outs, found, strict=True)])

    def convert_grads(self, grads) -> tuple:
        return tuple([localize(g) if lay is None else g for g, lay in zip(grads, self.in_layouts, strict=True)])


_chosen: dict = {}


def _pins(op, arrays: list, layouts: list, in_layouts: tuple) -> tuple | None:
    """Return the layouts to pin: those of the inputs, where that moves no more than the planner's choice."""
    # The gradient of ``x.sum()`` has the same value on every rank, so for the planner broadcast is as cheap as any
    # layout. But each rank should make the gradient of its own part of ``x`` alone, and so should all the ops before.
    split = [k for k, lay in enumerate(in_layouts) if lay is not None and max(lay.codes, default=-1) >= 0]
    if not split:
        return None
    key = (op, tuple(layouts), in_layouts)
    if key in _chosen:
        return _chosen[key]
    # The search plans the op several times; a second start only reads the result.
    on_disk = disk_cache.key_of("pins", op.fn, tuple(layouts), in_layouts)
    known = disk_cache.load(on_disk)
    if known is not None:
        _chosen[key] = known[0]
        return known[0]

    def cost(pins):
        plan, found = global_ops.plan_op(op.fn, (), arrays, layouts, None, tuple(pins))
        return plan.bytes, found

    # One input after the other, not all combinations: an op has one or two split inputs, and each trial is a plan.
    pins: list = [None] * len(in_layouts)
    best, free = cost(pins)
    for k in split:
        codes = in_layouts[k].codes
        if free[k].codes == codes:
            continue
        # Second with P where the input is broadcast: the gradient stays a sum, which is reduced once, at the leaf.
        for wanted in dict.fromkeys((codes, tuple(-2 if c == -1 else c for c in codes))):
            trial = [*pins[:k], wanted, *pins[k + 1 :]]
            moved, _ = cost(trial)
            if moved <= best:
                pins, best = trial, moved
                break
    result = _chosen[key] = tuple(pins) if any(p is not None for p in pins) else None
    disk_cache.store(on_disk, (result,))
    return result


def localize(grad):
    """Return the local value of the gradient of a local input."""
    if grad is None or grad._layout is None:
        return grad
    return wrap_any(conversions.to_logical(grad._array, grad._layout))


def match_leaf_layout(grad: Tensor, leaf: Tensor) -> Tensor:
    """Return a gradient in the layout of its leaf."""
    layout = leaf._layout
    if grad._layout is layout or (layout is None and grad._layout is None):
        return grad
    if layout is None:
        return localize(grad)
    if grad._layout is None:
        raise mixed_error("accumulating a gradient", (leaf, grad))
    # In a trace no layout is final: the planner brings the gradient to its leaf.
    if getattr(layout, "shape", None) is None or grad._layout.shape is None:
        return grad
    return convert_layout(grad, layout.placement, layout.sbp)


def convert_layout(x: Tensor, placement, sbp) -> Tensor:
    """Return a global tensor in another layout, without the tape."""
    if x._kind == TRACED:
        codes = algebra.parse(sbp, placement, x._array.ndim, allow_free=True)
        return wrap_any(to_sbp(x._array, placement, sbp), TracedLayout(placement, codes))
    return wrap_any(*conversions.convert(x._array, x._layout, placement, sbp))
