"""Batch dependence of values: rows of the batch, sums over its rows, or independent of it.

A micro-batch of two rows has the targets ``[[3, -100], [7, 2]]``:

    counted = ne(target, -100)          rows along dim 0: each row's own
    weights = convert(counted)          rows along dim 0
    count = reduce_sum(weights) = 3     a sum over rows: that of the whole batch is the sum of the micro-batches'

A value computed across rows in any other way (a mean that is subtracted, a sort along the rows) is of neither kind.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from sbpjax._core.jax_private import Literal

from . import primitives as known

STEADY = "steady"  # the same in every micro-batch
DRAWN = "drawn"  # random numbers of a micro-batch
SUM = "sum"  # a sum over the rows, and linear functions of it
UNKNOWN = "unknown"


class RowKinds:
    """The kinds of values: `STEADY`, `DRAWN`, `SUM`, `UNKNOWN`, or the dim along which the rows are."""

    def __init__(self, makers: Mapping[Any, Any], start: dict[Any, Any]) -> None:
        self._makers = makers
        self._kinds = dict(start)

    def __call__(self, v) -> Any:
        """Return the kind of a variable or literal."""
        open_ = [v]
        while open_:
            top = open_[-1]
            eqn = None if isinstance(top, Literal) or top in self._kinds else self._makers.get(top)
            if eqn is None:
                open_.pop()
                continue
            left = [i for i in eqn.invars if not isinstance(i, Literal) and i in self._makers and i not in self._kinds]
            if left:
                open_ += left
                continue
            open_.pop()
            for out, kind in zip(eqn.outvars, self._of(eqn), strict=True):
                self._kinds[out] = kind
        return self._find_kind(v)

    def _find_kind(self, v) -> Any:
        return STEADY if isinstance(v, Literal) else self._kinds.get(v, STEADY)

    def _of(self, eqn) -> list:
        kinds = [self._find_kind(v) for v in eqn.invars]
        if eqn.primitive.name == "optimization_barrier":
            return kinds
        count = len(eqn.outvars)
        if all(k == STEADY for k in kinds):
            return [STEADY] * count
        if all(k in (STEADY, DRAWN) for k in kinds):
            return [DRAWN] * count
        if UNKNOWN in kinds:
            return [UNKNOWN] * count
        if SUM in kinds:
            return [SUM if _is_sum(eqn, kinds) else UNKNOWN] * count
        name = eqn.primitive.name
        if name in known.OWN_ROWS:
            dims = {k for k in kinds if isinstance(k, int)}
            return [dims.pop() if len(dims) == 1 else UNKNOWN] * count
        rule: Callable | None = _RULES.get(name)
        if name in known.REDUCTIONS:
            rule = _reduction
        elif name in known.CUMULATIVE:
            rule = _cumulative
        found = UNKNOWN if rule is None else rule(eqn, kinds)
        return [UNKNOWN if found is None else found] * count


def _is_sum(eqn, kinds: list) -> bool:
    name = eqn.primitive.name
    if name in known.LINEAR_IN_SUMS:
        return True
    if name in known.SUMS:
        return all(k == SUM for k in kinds)
    return name in ("mul", "div") and kinds.count(SUM) == 1 and kinds[0] == SUM and kinds[1] == STEADY


def _rows_of(kinds: list) -> int | None:
    return kinds[0] if isinstance(kinds[0], int) and all(k == STEADY for k in kinds[1:]) else None


_RULES: dict[str, Callable] = {}


def _rule(*names: str) -> Callable[[Callable], Callable]:
    """Register a function of an equation and the kinds of its operands as the rule of primitives."""

    def enter(function: Callable) -> Callable:
        _RULES.update(dict.fromkeys(names, function))
        return function

    return enter


@_rule("broadcast_in_dim")
def _broadcast(eqn, kinds: list):
    row = _rows_of(kinds)
    if row is None:
        return None
    to = eqn.params["broadcast_dimensions"][row]
    return to if eqn.outvars[0].aval.shape[to] == eqn.invars[0].aval.shape[row] else None


@_rule("reshape")
def _reshape(eqn, kinds: list):
    row = _rows_of(kinds)
    if row is None:
        return None
    old, new = eqn.invars[0].aval.shape, eqn.outvars[0].aval.shape
    if math.prod(old[:row]) == 1:  # rows are the slowest dim: they stay together after any merge
        return next((d for d in range(len(new)) if new[d] != 1), 0)
    before = math.prod(old[:row])
    at = next((d for d in range(len(new)) if math.prod(new[:d]) == before and new[d] == old[row]), None)
    return at


@_rule("transpose")
def _transpose(eqn, kinds: list):
    row = _rows_of(kinds)
    return None if row is None else eqn.params["permutation"].index(row)


@_rule("squeeze")
def _squeeze(eqn, kinds: list):
    row = _rows_of(kinds)
    dims = eqn.params["dimensions"]
    return None if row is None or row in dims else row - sum(d < row for d in dims)


@_rule("expand_dims")
def _expand(eqn, kinds: list):
    row = _rows_of(kinds)
    if row is None:
        return None
    rest = [d for d in range(eqn.outvars[0].aval.ndim) if d not in eqn.params["dimensions"]]
    return rest[row]


@_rule("slice")
def _slice(eqn, kinds: list):
    row = _rows_of(kinds)
    return row if row is not None and eqn.outvars[0].aval.shape[row] == eqn.invars[0].aval.shape[row] else None


@_rule("rev")
def _reverse(eqn, kinds: list):
    return _rows_of(kinds)


@_rule("pad")
def _pad(eqn, kinds: list):
    row = _rows_of(kinds)
    return row if row is not None and tuple(eqn.params["padding_config"][row]) == (0, 0, 0) else None


@_rule("concatenate")
def _concatenate(eqn, kinds: list):
    dims = {k for k in kinds if isinstance(k, int)}
    if len(dims) != 1:
        return None
    (row,) = dims
    along = eqn.params["dimension"] == row
    return None if along and not all(k == row for k in kinds) else row


def _reduction(eqn, kinds: list):
    row = _rows_of(kinds)
    if row is None:
        return None
    axes = eqn.params["axes"]
    if row in axes:
        return SUM if eqn.primitive.name == "reduce_sum" else None
    return row - sum(a < row for a in axes)


@_rule("argmax", "argmin")
def _arg_reduction(eqn, kinds: list):
    return _reduction(eqn, kinds) if isinstance(kinds[0], int) and kinds[0] not in eqn.params["axes"] else None


def _cumulative(eqn, kinds: list):
    row = _rows_of(kinds)
    return None if row is None or eqn.params["axis"] == row else row


@_rule("sort")
def _sort(eqn, kinds: list):
    dims = set(kinds)
    return kinds[0] if len(dims) == 1 and isinstance(kinds[0], int) and eqn.params["dimension"] != kinds[0] else None


@_rule("gather")
def _gather(eqn, kinds: list):
    """Return the rows of a lookup in a steady table, or of one along other dims of the operand."""
    numbers = eqn.params["dimension_numbers"]
    operand, indices = kinds
    if not isinstance(indices, int):
        return None
    if operand != STEADY:
        pairs = zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True)
        if (operand, indices) not in set(pairs):
            return None
    batch = [d for d in range(eqn.outvars[0].aval.ndim) if d not in numbers.offset_dims]
    return batch[indices] if indices < len(batch) else None


@_rule("dot_general")
def _product(eqn, kinds: list):
    """Return the kind of a contraction: a sum if it runs over the rows of both operands."""
    (left, right), (batch_left, batch_right) = eqn.params["dimension_numbers"]
    if all(isinstance(k, int) for k in kinds):
        if (kinds[0], kinds[1]) in set(zip(left, right, strict=True)):
            return SUM
        shared = list(zip(batch_left, batch_right, strict=True))
        return shared.index((kinds[0], kinds[1])) if (kinds[0], kinds[1]) in shared else None
    side = 0 if isinstance(kinds[0], int) else 1
    row, contracted, batch = kinds[side], (left, right)[side], (batch_left, batch_right)[side]
    if kinds[1 - side] != STEADY or row in contracted or row in batch:
        return None
    free = [
        [d for d in range(v.aval.ndim) if d not in (*c, *b)]
        for v, c, b in zip(eqn.invars, (left, right), (batch_left, batch_right), strict=True)
    ]
    return len(batch) + (len(free[0]) if side else 0) + free[side].index(row)
