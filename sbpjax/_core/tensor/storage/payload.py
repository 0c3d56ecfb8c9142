"""Access to tensor payloads for other packages: read, write, or temporarily replace one in a trace.

    payload(w)                        # the jax.Array behind w: local, or physical with w.layout; a tracer in a trace
    put(w, array, w.layout)           # a new value; views of w see it, and backward knows that w was written
    saved = Snapshot(w)               # a trace puts a tracer in its place …
    lend(w, tracer, layout)
    saved.put_back(w)                 # … and takes it out again

The slots of `Tensor` are read in this package alone; a test enforces that.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from sbpjax._core.jax_private import ArrayImpl
from sbpjax._core.tensor.nodes.node import AccumulateGrad

from ..handle.lazy_payload import LazyPayload, LazyRoot
from ..handle.tensor import TRACED, Tensor, wrap_any
from .exchange import put_all as put_all
from .storage import is_alone

# ----------------------------------------------------------------------------------------------------------- reading


def refresh_tensor(x: Tensor) -> Tensor:
    """Return a tensor after a write through a view or base of it, or a fetch, is done."""
    return x._fresh()


def payload(x: Tensor) -> Any:
    """Return the payload of a tensor: an array, a tracer, an `Abstract`; of a global tensor the physical array."""
    return x._array if x._cell is None else x._fresh()._array


def payloads(tensors: Iterable[Tensor]) -> list:
    """Return `payload` of many tensors."""
    return [x._array if x._cell is None else x._fresh()._array for x in tensors]


def payloads_and_numbers(values: Iterable) -> list:
    """Return `payload` of those values that are tensors, and the others as they are."""
    return [(x._array if x._cell is None else x._fresh()._array) if isinstance(x, Tensor) else x for x in values]


def payload_metadata(x: Tensor) -> Any:
    """Return `payload` for its shape, dtype and sharding; a `LazyRoot` as it is."""
    return x._array if isinstance(x._array, LazyRoot) and x._array.stamp == x._cell.stamp else payload(x)


def is_array(x: Tensor) -> bool:
    """Return whether the payload is an array: no tracer, not abstract."""
    return payload(x).__class__ is ArrayImpl


def is_traced(x: Any) -> bool:
    """Return whether a value is a tensor over a tracer."""
    return isinstance(x, Tensor) and x._kind == TRACED


def is_shared(x: Tensor) -> bool:
    """Return whether a tensor's storage is, or was, shown by other tensors as well."""
    return x._cell is not None and x._fresh()._cell is not None  # a fetched one has none


def requires_grad(x: Tensor) -> bool:
    """Return ``x.requires_grad``, for loops over many parameters: most have a node, and a look at it answers."""
    return x._edge is not None or x.requires_grad


def node_of(x: Tensor) -> Any:
    """Return the tape's node that a tensor hangs on, of a leaf its `AccumulateGrad`; None where nothing is recorded."""
    return x._fresh()._edge


def edge_of(x: Tensor) -> tuple:
    """Return `node_of`, and which of its outputs the tensor is."""
    return x._fresh()._edge, x._idx


def edges_of(tensors: Iterable[Tensor]) -> tuple[tuple, tuple]:
    """Return `edge_of` of many tensors: their nodes, and which outputs they are."""
    edges = [edge_of(x) for x in tensors]
    return tuple([node for node, _ in edges]), tuple([idx for _, idx in edges])


def unchanged_payloads(tensors: Sequence[Tensor], layouts: Sequence, nodes: Sequence) -> list | None:
    """Return the payloads of tensors with unchanged layout and node and no shared storage; None if one is not so."""
    for x, layout, node in zip(tensors, layouts, nodes):
        if x._cell is not None or x._layout is not layout or x._edge is not node:
            return None
    return [x._array for x in tensors]


def write_counts(tensors: Iterable[Tensor]) -> list[int]:
    """Return the number of writes of each tensor; -1 where it has no array, as in a trace."""
    return [
        -1 if x._array.__class__ is not ArrayImpl else x._ver if x._cell is None else x._cell.stamp for x in tensors
    ]


# ----------------------------------------------------------------------------------------------------------- writing


def put(x: Tensor, array: Any, layout: Any = None) -> None:
    """Write a payload into a tensor, as an in-place op does but without the tape."""
    x._set(array, layout)


def put_from(x: Tensor, value: Tensor) -> None:
    """Write the payload of another tensor into a tensor, see `put`."""
    value._fresh()
    x._set(value._array, value._layout)


def put_all_from(tensors: Sequence[Tensor], values: Sequence[Tensor], *also: Iterable) -> None:
    """Write the payloads of other tensors into tensors, all of them or none; see `put_all`."""
    put_all(tensors, payloads(values), [value.layout for value in values], *also)


def put_results(tensors: Sequence[Tensor], values: Sequence[Tensor], *also: Iterable) -> None:
    """Write an op's results into the tensors it read, all of them or none; see `put_all`.

    In a trace a tensor keeps its layout, which the op's result does not show.
    """
    layouts = [x.layout if is_traced(x) else value.layout for x, value in zip(tensors, values)]
    put_all(tensors, payloads(values), layouts, *also)


def make_unshared_leaf(x: Tensor) -> Tensor:
    """Return a leaf of the same value that shares no storage with the tensor, so writes to it stay there."""
    return wrap_any(payload(x), x.layout)


def share_storage_of(x: Tensor, other: Tensor) -> None:
    """Make a new tensor show the storage of another one, as a leaf without grad."""
    x._hold(other._fresh()._array, other._layout)
    x._edge, x._idx = None, 0
    x._cell, x._meta, x._ver = other._cell, other._meta, other._ver
    if x._cell is not None:
        x._seen = other._seen


def assign_after_trace(x: Tensor, array: Any, layout: Any, written: bool = False) -> None:
    """Let a tensor that outlived its trace hold a value, alone on its storage and off the tape.

    ``written``: whether it is part of the state: views and aliases see the value.
    """
    if written:
        x._set(array, layout)
        return
    x._hold(array, layout)
    leaf = x._edge.__class__ is AccumulateGrad
    x._cell = x._meta = x._edge = None
    x._idx = 0
    if layout is None:
        x._own_meta().whole = True
    if leaf:
        as_leaf(x)


def leave_tape(tensors: Iterable[Tensor]) -> None:
    """Take tensors off the tape; leaves stay leaves."""
    for x in tensors:
        if x._fresh()._edge.__class__ is not AccumulateGrad:
            x._edge, x._idx = None, 0


def mark_kept(x: Tensor, kept: str | None) -> None:
    """Mark a tensor that a step left where its function keeps it: ``"constant"``, or ``"output"`` of every run."""
    x._own_meta().kept = kept


def kept_as(x: Tensor) -> str | None:
    """Return the mark of `mark_kept`."""
    return None if x._meta is None else x._meta.kept


def attach_to_node(x: Tensor, node: Any, idx: int) -> Tensor:
    """Hang a tensor on an output of a node; return it."""
    x._edge, x._idx = node, idx
    return x


def as_leaf(x: Tensor) -> Tensor:
    """Make a tensor a leaf that gets a gradient, whatever its dtype; return it."""
    return attach_to_node(x, AccumulateGrad(x), 0)


# ----------------------------------------------------------------------------------------------------------- lending


def weak(value: Any) -> Callable[[], Any]:
    """Return a weak reference, also to None."""
    return weakref.ref(value) if value is not None else lambda: None


class Snapshot:
    """Payload, tape position and storage of a tensor, to be restored after a trace.

    Args:
        x: the tensor.
        weakly: leave its storage, base and gradient's place to the tensor, so that they may go with it.

    Attributes:
        array: the payload.
        grad: the gradient.
        storage: gives its storage; None if it had none, or it is gone.
    """

    __slots__ = ("_facts", "_inner", "_meta", "_seen", "array", "grad", "storage")

    def __init__(self, x: Tensor, weakly: bool = False) -> None:
        # A lazy payload would go with the storage, and others that show it may read it meanwhile.
        if isinstance(x._array, LazyPayload) and (weakly or not is_alone(x)):
            x._fresh()
        self.array, self.grad = x._array, x.grad
        self._facts = x._layout, x._kind, x._edge, x._idx, x._ver
        self._meta = None if weakly else (x._meta,)
        cell = x._cell
        self.storage = weak(cell) if weakly else lambda: cell
        self._seen = None if cell is None else x._seen
        self._inner = () if cell is None else (cell.array, cell.layout, cell.stamp, cell.version)

    def put_back(self, x: Tensor | None) -> None:
        """Restore the tensor and its storage; the storage, which others may show, also if the tensor is gone."""
        cell = self.storage()
        if cell is not None:
            cell.array, cell.layout, cell.stamp, cell.version = self._inner
        if x is None:
            return
        x._array = self.array
        x._layout, x._kind, x._edge, x._idx, x._ver = self._facts
        x._cell = cell
        if cell is not None:
            x._seen = self._seen
        if self._meta is not None:
            (x._meta,) = self._meta
        if x._meta is not None:
            x._meta.grad = self.grad


def substitute_payload(x: Tensor, array: Any, layout: Any, as_new: bool = False) -> None:
    """Let a tensor hold another payload, alone on its storage, until its `Snapshot` is put back.

    Args:
        x: the tensor.
        array: the payload, mostly a tracer.
        layout: its layout.
        as_new: whether it is a leaf of its own meanwhile, without gradient and base.
    """
    leaf = as_new and x.requires_grad
    x._hold(array, layout)
    x._cell = None
    if as_new:
        x._meta = x._edge = None
    if leaf:
        as_leaf(x)
