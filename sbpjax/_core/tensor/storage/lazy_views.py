"""Lazy views: chains of unread views, compiled as one program forward and one backward.

``x.reshape(b, t, h, -1).transpose(1, 2).chunk(3, -1)`` makes five views and reads the last three. A view of a local
tensor has a `LazyView` in place of its array until it is read, and its `Outputs` in place of its node. A read runs all
steps from the nearest view that has an array in one program, with one node on the tape; so does a copy of a lazy view
(`apply_to_view`). A write to the storage meanwhile increments the stamp, and the view is read anew from there, as any
other (`storage.regenerate`).

A view that a node passed by may be read later, for its value or for a hook: then the node is hung on it
(`_relink_passed_nodes`). Worked case: ``t = x.t(); y = t.reshape(-1); t.register_hook(f)``: ``y``'s node led to ``x``;
when the node of ``t`` is read, ``t`` gets one, and ``y``'s now leads there, so that ``f`` is called.
"""

from __future__ import annotations

import contextlib
import weakref
from typing import Any

import jax

from sbpjax._core.compiler.eager import evaluator
from sbpjax._core.compiler.eager.evaluator import setting
from sbpjax._core.jax_private import trace_state_clean
from sbpjax._core.runtime.ambient_mesh import hide_mesh, outside_program
from sbpjax._core.runtime.lru_cache import LRUCache, most_programs
from sbpjax._core.tensor.nodes.node import sequence

from ..calls.op_errors import translate
from ..dispatch import dispatch
from ..dispatch.local import LocalNode
from ..dispatch.op import Op, entry_of, op_of, struct_of
from ..handle.lazy_payload import UNREAD, LazyPayload
from ..handle.mode import mode
from ..handle.tensor import LOCAL, Tensor, wrap
from ..nodes.op_node import record_op

# Programs are kept per chain of steps, and chains of every length and kind would be endless.
_DEEPEST = 6  # steps that one program takes; a longer chain is read on the way
_new = Tensor.__new__


class Outputs:
    """The outputs of one view op that have not been read; in their tensors' `_edge` if they are recorded.

    Attributes:
        op: the op, of one input.
        array: the payload at the beginning of the chain.
        edge, idx: its place on the tape, None where nothing is recorded.
        parent: the lazy views that the op is applied to, or None; ``place`` is the number among them.
        depth: the number of steps from the payload.
        arrays: their payloads, once read.
        node: their node, once read; None where nothing is recorded.
        seq: the node's place on the tape.
        passed: nodes that lead past these views: a reference with the distance to the view that the node leads to,
            the distance to this one, which of these outputs that is, and the steps from it.
    """

    __slots__ = (
        "array", "arrays", "depth", "edge", "idx", "node", "op", "parent", "passed", "place", "seq",
    )  # fmt: skip

    hooks = None  # as of a node without hooks

    def __init__(self, x: Tensor, lazy: LazyView | None, op: Op) -> None:
        self.op = op
        self.arrays = self.node = self.passed = None
        # Its place on the tape too: backward runs nodes by this number, and hooks fire in the order in which the user
        # wrote.
        self.seq = sequence()
        if lazy is None:
            self.array = x._array
            self.edge, self.idx = x._edge, x._idx
            self.parent, self.place, self.depth = None, 0, 1
        else:
            parent = lazy.outputs
            self.array = parent.array
            self.edge, self.idx = parent.edge, parent.idx
            self.parent, self.place, self.depth = parent, lazy.place, parent.depth + 1
        # Whether it is recorded is decided when it is made, not when it is read: that may be in another mode.
        if not mode.grad or x._edge is None:
            self.edge = None

    def read(self) -> tuple:
        """Run the program; return the payloads."""
        if self.arrays is not None:
            return self.arrays
        steps, missed = [(self.op, None)], []
        at, array, edge, idx = self, self.array, self.edge, self.idx
        # Back to the nearest existing payload: the steps from it run as one program.
        while at.parent is not None:
            above, place = at.parent, at.place
            if above.arrays is not None:
                array, idx = above.arrays[place], place
                edge = None if edge is None else above.node
                break
            missed.append((above, place, tuple(steps)))
            steps.insert(0, (above.op, place))
            at = above
        op = _chain(tuple(steps))
        try:
            # A concrete view that is first read inside a trace stays concrete: as a tracer it would leak, since the
            # tensor outlives the trace.
            with contextlib.nullcontext() if trace_state_clean() else outside_program():
                out = op.call(array)
        except Exception as error:
            raise translate(error, op, ()) from None
        self.arrays = out if out.__class__ is tuple else (out,)
        if edge is not None:
            self._record(op, array, edge, idx, missed)
        if self.passed is not None:
            self._relink_passed_nodes()
        # The root's payload must not live as long as the view does.
        self.parent = self.array = self.passed = None
        return self.arrays

    def _record(self, op: Op, array, edge, idx: int, missed: list) -> None:
        entry = entry_of(op, (0,), (array.aval,))
        if not entry.diff_outs:
            return
        node = self.node = record_op(LocalNode, entry, (edge,), (idx,), (), (), None)
        node.seq = self.seq
        # Weak: views that were passed by live on with their tensors, the node only as long as something hangs on it.
        passing = [weakref.ref(node), len(missed)]
        for count, (views, place, steps) in enumerate(missed):
            if views.passed is None:
                views.passed = []
            # A view that is never read itself, in a loop of thousands of readers, would collect references to dead
            # nodes.
            elif len(views.passed) >= 64:
                views.passed = [other for other in views.passed if other[0][0]() is not None]
            views.passed.append((passing, count, place, steps))

    def _relink_passed_nodes(self) -> None:
        """Let nodes that led past these views lead to their node."""
        if self.node is None or mode.walks:  # a walk has counted the edges it goes along
            return
        for passing, count, place, steps in self.passed:
            node = passing[0]()
            if node is not None and count < passing[1]:  # it does not lead to a view nearer to it
                node.entry = entry_of(_chain(steps), (0,), (self.arrays[place].aval,))
                node.edges, node.idxs = (self.node,), (place,)
                passing[1] = count


class LazyView(LazyPayload):
    """One of some outputs."""

    __slots__ = ("outputs", "place")

    def __init__(self, outputs: Outputs, place: int, aval: Any, stamp: int) -> None:
        self.outputs, self.place, self.aval, self.stamp = outputs, place, aval, stamp

    @property
    def sharding(self) -> Any:
        """The sharding of the array at the beginning of the chain."""
        outputs = self.outputs
        return (outputs.array if outputs.arrays is None else outputs.arrays[self.place]).sharding

    def materialize(self) -> Any:
        """Run the steps to the view; return its array."""
        return self.outputs.read()[self.place]


def lazy_view_of(x: Tensor) -> LazyView | None:
    """Return the payload of a lazy view that shows its storage as it is now, else None."""
    lazy = x._array
    return lazy if lazy.__class__ is LazyView and lazy.stamp == x._cell.stamp else None


def views(x: Tensor, op: Op) -> tuple | None:
    """Return the outputs of a view op as tensors that have not been read; None where the op must run at once."""
    # In a trace a view is an equation, which XLA removes; laziness would gain nothing, and could outlive the trace.
    if x._kind or not trace_state_clean():
        return None
    lazy = lazy_view_of(x)
    if lazy is None or lazy.outputs.arrays is not None or lazy.outputs.depth >= _DEEPEST:
        lazy = None
        if x._fresh()._kind:
            return None
    aval = x._array.aval
    avals = op.shapes.get(aval)
    if avals is None:
        try:
            # All at once: shapes that ever change, such as those of a growing cache, do not come back one by one
            # either.
            if len(op.shapes) >= _MAX_SHAPES:
                op.shapes.clear()
            avals = evaluator.first_use.result_avals(op, (aval,)) if setting.is_on() else None
            if avals is None:
                avals = tuple(hide_mesh(jax.make_jaxpr(op.traced))(struct_of(aval)).out_avals)
            op.shapes[aval] = avals
        except Exception:  # the op itself raises the error
            return None
    found = Outputs(x, lazy, op)
    stamp = 0 if x._cell is None else x._cell.stamp
    if len(avals) == 1:
        return (_tensor(found, 0, avals[0], stamp),)
    return tuple([_tensor(found, place, aval, stamp) for place, aval in enumerate(avals)])


def _tensor(outputs: Outputs, place: int, aval: Any, stamp: int) -> Tensor:
    t = _new(Tensor)
    t._array = LazyView(outputs, place, aval, stamp)
    t._layout = t._cell = t._meta = None
    t._edge, t._idx = None if outputs.edge is None else outputs, place
    t._ver = 0
    t._seen = UNREAD
    t._kind = LOCAL
    return t


def apply_to_view(x: Tensor, op: Op) -> Tensor:
    """Return an op of one input and output; on a lazy view, which stays so, in one program with the steps to it."""
    lazy = lazy_view_of(x)
    if lazy is None or not trace_state_clean():
        return dispatch.unary(op, x)
    found = Outputs(x, lazy, op)
    out = wrap(*found.read())
    out._edge = found.node
    return out


def materialize_view(x: Tensor) -> bool:
    """Give a lazy view its array and its place on the tape; return False if its storage was written meanwhile."""
    lazy = x._array
    outputs, current = lazy.outputs, lazy.stamp == x._cell.stamp
    if current:
        x._array = lazy.materialize()
    if x._edge is outputs:  # else it has left the tape, or was not recorded
        node = outputs.node if current else None
        x._edge = node if node is not None and lazy.place in node.entry.diff_outs else None
    return current


_CHAINS = LRUCache(most_programs())
_MAX_SHAPES = 4096  # a few hundred bytes each


def _chain(steps: tuple) -> Op:
    """Return the op that takes several steps, each ``(op, which of its outputs the next one takes)``."""
    # The program of the op itself most likely exists already.
    if len(steps) == 1:
        return steps[0][0]
    found = _CHAINS.get(steps)
    if found is None:
        found = _CHAINS.promote_older(steps) or _CHAINS.keep(steps, op_of(chain, (("steps", steps),)))
        found.name = steps[-1][0].name
    return found


def chain(x, /, steps):
    """Apply the steps to an array; return all outputs of the last one."""
    for op, place in steps:
        x = op.traced(x)
        if place is not None and x.__class__ is tuple:
            x = x[place]
    return x
