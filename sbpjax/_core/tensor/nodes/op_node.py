"""Autograd nodes in *recompute form*: a node keeps inputs; its backward runs the cached vjp program on them."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from sbpjax._core.tensor.handle.tensor import Tensor, restore
from sbpjax.errors import AutogradError

from .node import FREED, Node, freed_error, sequence


class OpNode(Node):
    """A recorded op in recompute form: its backward runs the vjp program of an `Entry` on the saved inputs.

    The subclass runs the program, local or placed as the op (`_core.tensor.dispatch.local`, `placed`).

    Attributes:
        entry: the backward.
        saved: the payloads that it reads; `FREED` after it ran; packed values where there is a hook on saved tensors.
        checks: ``(ref, version, ref, version, …)`` of the tensors that must not have changed.
    """

    __slots__ = ("checks", "entry", "n_out", "saved")

    checks: Any
    entry: Any
    saved: Any
    layouts: Any = None

    def name(self) -> str:
        return f"{self.entry.op.name}_backward"

    def unpack_saved(self) -> tuple:
        """Return the saved payloads."""
        saved = self.saved
        if saved.__class__ is not tuple:
            if saved is FREED:
                raise freed_error(self.name())
            return saved.unpack_payloads(self.name())
        pairs = iter(self.checks)
        for ref, version in zip(pairs, pairs):
            t = ref()
            # A tensor that is gone cannot have been changed by its user.
            if t is None:
                continue
            now = t._ver if t._cell is None else t._cell.version
            if now != version:
                raise AutogradError(
                    f"backward through {self.name()}",
                    f"a tensor it needs, {list(t.shape)}, was modified by an inplace operation: "
                    f"it is at version {now}, expected version {version}",
                    "a tensor that backward needs must not change between the op and backward()",
                    "use the out-of-place op, or write to x.clone()",
                )
        return saved

    def program(self, grads: list) -> tuple:
        """Return the backward as an op, and the cotangents that it takes; (None, []) if there are none."""
        entry = self.entry
        if entry.n_out == 1:
            return entry.first, grads
        mask = tuple([i for i in entry.diff_outs if grads[i] is not None])
        return (entry.variant(mask), [grads[i] for i in mask]) if mask else (None, [])

    def as_op(self, grads: list) -> tuple:
        """Return the backward as an op and its inputs: saved payloads become tensors on their old edges."""
        saved = self.unpack_saved()
        op, cotangents = self.program(grads)
        edge_of = dict(zip(self.entry.needs, zip(self.edges, self.idxs, strict=True), strict=True))
        layouts = self.layouts or (None,) * len(saved)
        facts = zip(self.entry.keep, saved, layouts, strict=True)
        return op, (*[restore(a, lay, *edge_of.get(i, (None, 0))) for i, a, lay in facts], *cotangents)

    def release(self) -> None:
        if self.saved:
            self.saved = FREED
        self.checks = ()


_new_node = object.__new__
_ref = weakref.ref
# Set while there are hooks on saved tensors (`graph`).
pack: Callable[[Any, tuple, tuple | None], Any] | None = None


def record_op(cls: type[OpNode], entry, edges, idxs, saved: tuple, checks, outs, layouts=None) -> OpNode:
    """Put an op in recompute form on the tape, see `record`; return its node.

    Args:
        cls: the node's class, which knows how a backward runs where the op ran.
        entry: the op's `_core.tensor.dispatch.op.Entry`.
        edges: as for `record`.
        idxs: as for `record`.
        saved: the payloads that the backward reads.
        checks: ``(ref, version, ref, version, …)`` of the tensors that must not change before backward.
        outs: the op's outputs; None if the caller hangs them on the node, now or when they are read.
        layouts: layouts of the payloads in ``saved``; None if all are local.
    """
    node: Any = _new_node(cls)
    node.entry = entry
    node.n_out = entry.n_out
    if pack is not None and saved:
        saved = pack(entry.op, saved, layouts)
        # The packed value of a hook is a copy, which no write of the user's can reach.
        checks = checks if saved.__class__ is tuple else ()
    node.saved = saved
    node.checks = checks
    # `record` without a call: this runs with every recorded op.
    node.edges = edges
    node.idxs = idxs
    node.hooks = None
    node.seq = sequence()
    if outs is not None:
        for i in entry.diff_outs:
            t = outs[i]
            t._edge = node
            t._idx = i
    return node


def saved_payloads_of(op, keep: tuple[int, ...], inputs: tuple, arrays: list, outs: tuple) -> tuple[tuple, list]:
    """Return the payloads that a backward reads, and ``[ref, version, …]`` of tensors that must not change."""
    checks: list = []
    if op.check == "inputs":
        for i in keep:
            x = inputs[i]
            if isinstance(x, Tensor):
                checks += _ref(x), x._ver
    elif op.check == "outputs":
        for x in outs:
            checks += _ref(x), x._ver
    return tuple([arrays[i] for i in keep]), checks
