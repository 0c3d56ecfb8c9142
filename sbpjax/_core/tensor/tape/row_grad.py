"""`RowGrad`: row-sparse gradient of an embedding table, and the lookup that produces it.

    table = nn.Embedding(10_000_000, 16, sparse=True)
    table(ids).sum().backward()              # ids: (4096, 26)
    table.weight.grad.ids, .rows             # (106496,), (106496, 16); no tensor of the table's shape is made

It is in ``weight.grad`` until an optimizer takes it. Two of them are added by concatenation; code that
needs a tensor calls `RowGrad.to_dense`, as the sum with a dense gradient does (a table that is also a projection).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sbpjax._core.ops.layers import row_update as ops
from sbpjax._core.tensor.dispatch import dispatch
from sbpjax._core.tensor.dispatch.op import op_of
from sbpjax._core.tensor.dispatch.placed import match_leaf_layout
from sbpjax._core.tensor.handle.tensor import TRACED, Tensor, wrap_any
from sbpjax._core.tensor.nodes.node import AccumulateGrad, Node, freed_error, record

from ..handle.mode import mode


class RowGrad:
    """Numbers of rows and the gradient of each; a row may be named several times, and then has their sum.

    Attributes:
        ids: ``(N,)``, for tables ``(F, V, D)`` ``(N, F)``; a number outside the table names no row.
        rows: ``(N, D)`` or ``(N, F, D)``.
        table: the tensor that it is the gradient of, for its shape and layout.
        merged: whether every row is named once.
    """

    __slots__ = ("ids", "merged", "rows", "table")

    is_sparse = True
    # Neither local nor placed: code that adds into gradients in place skips this one.
    _kind, _cell, _edge = TRACED, None, None

    def __init__(self, ids: Tensor, rows: Tensor, table: Tensor, merged: bool = False) -> None:
        self.ids, self.rows, self.table, self.merged = ids, rows, table, merged

    @property
    def shape(self) -> Any:
        """The table's shape."""
        return self.table.shape

    @property
    def dtype(self) -> Any:
        """The dtype of the rows."""
        return self.rows.dtype

    @property
    def layout(self) -> Any:
        """The layout of the rows."""
        return self.rows.layout

    def to_dense(self) -> Tensor:
        """Return the gradient as a tensor of the table's shape."""
        shape = (("shape", tuple(self.table.shape)),)
        return dispatch.run(op_of(ops.dense_rows, shape), (self.ids, self.rows))

    def coalesce(self) -> RowGrad:
        """Return the same gradient with every row named once, in ascending order, and the rest naming none."""
        if self.merged:
            return self
        shape = (("shape", tuple(self.table.shape)),)
        ids, rows = dispatch.run(op_of(ops.merged_rows, shape), (self.ids, self.rows))
        return RowGrad(ids, rows, self.table, merged=True)

    def merge_(self) -> Tensor:
        """Merge repeated rows in place, and return the rows, for norms and scales."""
        found = self.coalesce()
        self.ids, self.rows, self.merged = found.ids, found.rows, True
        return self.rows

    def detach(self) -> RowGrad:
        """Return it apart from the tape."""
        return RowGrad(self.ids, self.rows.detach(), self.table, self.merged)

    def __add__(self, other: Any) -> Any:
        if isinstance(other, RowGrad):
            both = dispatch.run(op_of(ops.join_gradients), (self.ids, self.rows, other.ids, other.rows))
            return RowGrad(*both, self.table)
        return self.to_dense() + other if isinstance(other, Tensor) else NotImplemented

    __radd__ = __add__

    def __repr__(self) -> str:
        return f"RowGrad({list(self.ids.shape)} rows of {self.dtype.name}{list(self.shape)})"


def has_row_gradient(weight: Tensor, sparse: bool) -> bool:
    """Return whether a table gets a gradient of rows: requested by the lookup or, in a program, by an optimizer.

    A table that is computed, or that JAX differentiates, has a dense gradient.
    """
    weight._fresh()
    if not mode.grad or weight._edge.__class__ is not AccumulateGrad or mode.closure is not None:
        return False
    return sparse or (weight._kind == TRACED and weight._meta is not None and weight._meta.by_rows)


def request_row_gradient(weight: Tensor, wanted: bool) -> None:
    """Set whether an optimizer wants a table's gradient by rows, where a program is traced."""
    weight._own_meta().by_rows = wanted


def mark_row_table(weight: Tensor, joined: Callable[[Any], None]) -> None:
    """Mark a parameter as some rows of a larger table, which an optimizer has to update by rows or reject.

    Args:
        weight: the parameter, ``(rows, columns)``.
        joined: called with each optimizer that takes it.
    """
    weight._own_meta().row_table = joined


def row_table_of(weight: Tensor) -> Callable[[Any], None] | None:
    """Return the callback of `mark_row_table`, None for an ordinary parameter."""
    return None if weight._meta is None else weight._meta.row_table


def put_grad(tensor: Tensor, grad: RowGrad) -> None:
    """Set the gradient of a table."""
    tensor._own_meta().grad = grad


def row_parts(tensor: Tensor) -> tuple[Tensor, Tensor]:
    """Return numbers and rows of the gradient of a table that has one of rows."""
    grad: Any = tensor.grad
    return grad.ids, grad.rows


def record_lookup(ids: Tensor, out: Tensor, weight: Tensor, padding_idx: int | None) -> Tensor:
    """Put a lookup on the tape whose backward gives a `RowGrad`.

    ``ids``: the integers that were looked up; for tables ``(F, V, D)`` the last dim has one for each.
    """
    node = LookupNode()
    node.ids, node.table, node.padding_idx = ids, weight, padding_idx
    record(node, (weight._edge,), (weight._idx,), (out,))
    return out


class LookupNode(Node):
    """The tape's node of a lookup by rows."""

    __slots__ = ("ids", "padding_idx", "table")

    ids: Any
    padding_idx: Any
    table: Any

    label = "embedding_rows_backward"

    def backward(self, grads: list, create_graph: bool) -> tuple:
        if self.ids is None:
            raise freed_error(self.name())
        static = (("shape", tuple(self.table.shape)), ("dtype", self.table.dtype.np), ("padding_idx", self.padding_idx))
        return (RowGrad(*dispatch.run(op_of(ops.named_rows, static), (self.ids, grads[0])), self.table),)

    def release(self) -> None:
        self.ids = None


def dense(grad: RowGrad, leaf: Tensor) -> Tensor:
    """Return the gradient of a leaf as a tensor in the leaf's layout."""
    return match_leaf_layout(grad.to_dense(), leaf)


def values_of(grad: Any) -> Tensor:
    """Return the numbers of a gradient, each once: a dense one itself, of rows the rows after they were merged."""
    return grad.merge_() if grad.__class__ is RowGrad else grad


def accumulate_grad(held: Any, grad: Any, leaf: Tensor) -> Any:
    """Return the sum of a leaf's gradient and the arriving one, of which one is a gradient of rows."""
    total = grad if held is None else held + grad
    return match_leaf_layout(wrap_any(total._array, total._layout), leaf) if isinstance(total, Tensor) else total
