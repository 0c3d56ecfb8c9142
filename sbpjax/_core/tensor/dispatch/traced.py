"""Traced execution of an op: its function is called on the tracers of its inputs.

The tape works as ever, but keeps the closure of `jax.vjp` (the *residual form*) rather than inputs, so that a traced
step costs what ``jax.value_and_grad`` costs; the recompute form would compute a scan twice.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sbpjax._core.compiler import conversions, interop
from sbpjax._core.jax_private import source_info_util, stages_program
from sbpjax._core.runtime import sizes
from sbpjax._core.runtime.ambient_mesh import check_no_manual_axes
from sbpjax._core.tensor.nodes.node import Node, freed_error, record
from sbpjax.sbp import algebra, broadcast, undecided

from ..calls.op_errors import check_leaked, describe, mixed_error, translate
from ..handle.mode import mode
from ..handle.tensor import TRACED, Tensor, restore, wrap_any
from . import explicit_axes, op_calls
from .op import _conjugate, entry_of


class TracedLayout:
    """The known part of a global tensor's layout inside a trace: its placement, and the pinned entries of its sbp.

    Args:
        placement: the placement.
        pinned: its codes, with `algebra.FREE` where the planner will choose; None if that is everywhere.

    Attributes:
        placement: the placement.
        pinned: the codes that are known, None if none is.
    """

    __slots__ = ("pinned", "placement")

    _interned: dict = {}
    shape = None

    # Interned, as layouts are: keys of blocks and programs hold them, and compare them by identity.
    def __new__(cls, placement, pinned=None):
        key = (placement, placement.named, pinned)
        found = cls._interned.get(key)
        if found is None:
            if pinned is not None and set(pinned) == {algebra.FREE}:
                return cls(placement)
            found = cls._interned[key] = object.__new__(cls)
            found.placement, found.pinned = placement, pinned
        return found

    def sbp_of(self, array) -> tuple:
        """Return the nd-sbp of the traced array in this layout; see `sbpjax.sbp.undecided`."""
        return undecided.sbp_of(self.pinned or (algebra.FREE,) * len(self.placement.hierarchy), array)

    def __repr__(self) -> str:
        return f"TracedLayout({self.placement!r}, {self.pinned})"


def as_traced(layout, ndim: int | None = None) -> TracedLayout | None:
    """Return a tensor's layout for a tracer that is the same value.

    Args:
        layout: a `Layout`, a `TracedLayout`, None.
        ndim: the number of dims of the tracer, if it may be a part of the value, as in a ``vmap``.
    """
    if layout is None or layout.shape is None:
        return layout
    return TracedLayout(layout.placement, layout.codes if ndim in (None, len(layout.shape)) else None)


def unpin_layout(layout) -> TracedLayout | None:
    """Return the layout of a traced value on the placement of another one, with all entries left to the planner."""
    return None if layout is None else TracedLayout(layout.placement)


def logical_value(x):
    """Return the logical value of an input as an array or tracer."""
    if not isinstance(x, Tensor):
        return x.item() if isinstance(x, np.generic) else x
    x._fresh()
    if x._kind == TRACED:
        check_leaked(x)
        return x._array if mode.closure is None else mode.closure(x)
    if mode.capture is not None:
        return mode.capture(x)
    return constant(x)


def constant(x: Tensor):
    """Return a tensor's logical value as a constant of the program."""
    x = x if x._cell is None else x._fresh()
    layout = x._layout
    if layout is None:
        return x._array
    check_no_manual_axes("a global tensor", describe(x))
    if mode.capture is None and layout.is_even and not layout.partial_axes and not stages_program():
        return interop.to_jax(x._array, layout)  # `jax.grad` and `vmap` compute at once, on the tensor's devices
    # Lowering takes constants as broadcast (`_core.compiler.lower`).
    everywhere = (broadcast,) * len(layout.placement.hierarchy)
    whole = conversions.convert(x._array, layout, layout.placement, everywhere)[0]
    # In a program of the user's the axes of types are those of its own mesh; one device's copy has none.
    return whole if mode.capture is not None else whole.addressable_data(0)


def run(op, inputs: tuple, out_sbps=None):
    """Run an op of which at least one input is a tracer."""
    arrays = [logical_value(x) for x in inputs]
    needs = [i for i, x in enumerate(inputs) if isinstance(x, Tensor) and x._edge is not None] if mode.grad else []
    found = next((x._layout for x in inputs if isinstance(x, Tensor) and x._layout is not None), None)
    if found is not None and not getattr(op.fn, "crosses_placements", False):
        _check_placements(op, inputs, found.placement)
    # No codes: the layouts of results are the planner's choice, and it has not planned yet.
    layout = None if found is None else TracedLayout(found.placement)
    per_process = mode.auto is None and any(map(is_per_process, inputs))
    if per_process and found is not None:
        raise mixed_error(op.name, inputs)
    try:
        if not needs:
            out = explicit_axes.call(op, arrays)
            single = not isinstance(out, (tuple, list))
            outs = [wrap_any(o, layout) for o in _check_sizes(op, (out,) if single else out)]
            if per_process:
                note_per_process(*outs)
            return outs[0] if single else tuple(outs)
        outs = _record_op(op, inputs, arrays, needs, layout)
        if per_process:
            note_per_process(*(outs if outs.__class__ is tuple else (outs,)))
        return outs
    except Exception as error:
        raise translate(error, op, inputs) from None


def _check_sizes(op, outs):
    """Return the outputs of an op; raise if a size in bytes overflows: the program would end the process."""
    for out in outs:
        if out is not None:
            sizes.check_bytes(op.name, out.shape, out.dtype)
    return outs


def is_per_process(x: Any) -> bool:
    """Return whether a value is a local tensor that may differ between processes.

    Those are given to a trace, or computed from such. Tensors that a trace makes itself (``arange(n)``, a mask) are the
    same on all, so they may meet global tensors as broadcast ones.
    """
    if not isinstance(x, Tensor) or x._layout is not None or not x.ndim:
        return False
    if x._kind == TRACED:
        return id(x._array) in mode.local_values
    return x._meta is None or not x._meta.whole


def note_per_process(*tensors: Tensor) -> None:
    """Mark traced local tensors as values that may differ between processes."""
    for x in tensors:
        if x._layout is None and x._kind == TRACED:
            mode.local_values[id(x._array)] = x._array  # held, so that no id comes twice


def _check_placements(op, inputs: tuple, placement) -> None:
    """Raise for tensors on two placements: an op runs on one. Updates of all parameters at once may cross them."""
    for x in inputs:
        if isinstance(x, Tensor) and x._layout is not None and x._layout.placement != placement:
            raise mixed_error(op.name, inputs)


def _record_op(op, inputs, arrays, needs, layout):
    where = source_info_util.current()
    diff, vjp, rest, (single, floats) = op_calls.forward(op, needs, arrays)
    diff, rest = list(diff), list(rest)
    n_out = len(diff) + len(rest)
    outs = [diff.pop(0) if i in floats else rest.pop(0) for i in range(n_out)]
    outs = [wrap_any(o, layout) for o in _check_sizes(op, outs)]
    if floats:
        node = TracedNode()
        node.op, node.vjp, node.n_out, node.diff_outs = op, vjp, n_out, floats
        node.avals = tuple([jax.typeof(o._array) for o in outs])
        node.inputs = inputs
        node.layouts = tuple(inputs[i]._layout for i in needs)
        node.scope = where
        record(node, tuple(inputs[i]._edge for i in needs), tuple(inputs[i]._idx for i in needs), outs, floats)
    return outs[0] if single else tuple(outs)


class TracedNode(Node):
    """The tape's node of a traced op, in residual form: the closure that `jax.vjp` returned.

    Attributes:
        op: the op.
        inputs: its inputs.
        vjp: the closure.
        diff_outs: the outputs that can have a cotangent.
        avals: of the outputs.
        layouts: those of the inputs that get a gradient.
        scope: the line and module of the forward, under whose names the backward goes.
    """

    __slots__ = ("avals", "diff_outs", "inputs", "layouts", "n_out", "op", "scope", "vjp")

    avals: Any
    diff_outs: Any
    inputs: Any
    layouts: Any
    op: Any
    scope: Any
    vjp: Any

    def name(self) -> str:
        return f"{self.op.name}_backward"

    def backward(self, grads: list, create_graph: bool) -> tuple:
        if self.vjp is None:
            raise freed_error(self.name())
        cotangents = tuple([_conjugate(_cotangent(self.avals[i], grads[i])) for i in self.diff_outs])
        # Plans, HLO and errors name the line of the forward: the line of `backward()` would be the same for all.
        with source_info_util.user_context(self.scope.traceback, name_stack=self.scope.name_stack):
            results = map(_conjugate, op_calls.backward(self.op, self.vjp, cotangents))
        return tuple(wrap_any(g, unpin_layout(lay)) for g, lay in zip(results, self.layouts, strict=True))

    def as_op(self, grads: list) -> tuple:
        """Return the backward as an op on the op's inputs, and these."""
        if self.vjp is None:
            raise freed_error(self.name())
        needs = tuple(i for i, x in enumerate(self.inputs) if isinstance(x, Tensor) and x._edge is not None)
        avals = tuple(None if x is None else jax.typeof(jnp.asarray(logical_value(x))) for x in self.inputs)
        # The recompute form, for a backward that is itself differentiated: the residuals of `jax.vjp` are no inputs of
        # an op.
        entry = entry_of(self.op, needs, avals)
        mask = tuple(i for i in entry.diff_outs if grads[i] is not None)
        edge_of = dict(zip(needs, zip(self.edges, self.idxs, strict=True), strict=True))
        kept = [self.inputs[i] for i in entry.keep]
        kept = [restore(x._array, x._layout, *edge_of[i]) if i in edge_of else x for i, x in zip(entry.keep, kept)]
        return entry.variant(mask), (*kept, *[grads[i] for i in mask])

    def release(self) -> None:
        self.vjp = None
        self.inputs = None


def _cotangent(aval, g):
    if g is None:  # a missing cotangent is zero
        return jnp.zeros(aval.shape, aval.dtype)
    x = logical_value(g)
    # A weak type would promote otherwise in the vjp than the output did.
    known = jax.typeof(x)
    return x if known.dtype == aval.dtype and not known.weak_type else x.astype(aval.dtype)
