"""Symbolic sizes: an op that meets a second shape is traced once more, for all shapes of the same pattern.

    seen    float32[8, 33, 64]     traced with these sizes
    now     float32[8, 34, 64]     traced as float32[8, a, 64]
    later   float32[8, 35, 64]     a = 35: nothing is traced

Dims that changed in the same way share a symbol. A dim that is 0 or 1 is never symbolic, since programs broadcast and
skip such dims.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax import export

Pattern = tuple[tuple[tuple[int | str, ...], Any, bool] | None, ...]


def pattern_between(before: Sequence, now: Sequence) -> Pattern | None:
    """Return the pattern of two lists of avals (None for an absent input); None if they have none in common."""
    names: dict[tuple[int, int], str] = {}
    pattern: list = []
    if len(before) != len(now):
        return None
    for x, y in zip(before, now, strict=True):
        if x is None or y is None:
            if x is not y:
                return None
            pattern.append(None)
            continue
        if x.ndim != y.ndim or x.dtype != y.dtype or x.weak_type != y.weak_type:
            return None
        dims: list[int | str] = []
        for m, n in zip(x.shape, y.shape, strict=True):
            if m != n and min(m, n) < 2:
                return None
            dims.append(m if m == n else names.setdefault((m, n), f"n{len(names)}"))
        pattern.append((tuple(dims), x.dtype, x.weak_type))
    return tuple(pattern) if names else None


def sizes_in(pattern: Pattern, avals: Sequence) -> dict[str, int] | None:
    """Return the sizes of a pattern's symbols for avals, None if they do not fit."""
    sizes: dict[str, int] = {}
    if len(pattern) != len(avals):
        return None
    for part, aval in zip(pattern, avals, strict=True):
        if part is None or aval is None:
            if part is not aval:
                return None
            continue
        dims, dtype, weak = part
        if len(dims) != aval.ndim or dtype != aval.dtype or weak != aval.weak_type:
            return None
        for dim, n in zip(dims, aval.shape, strict=True):
            if dim.__class__ is str:
                if n < 2 or sizes.setdefault(dim, n) != n:
                    return None
            elif dim != n:
                return None
    return sizes


def structs_of(pattern: Pattern) -> list:
    """Return symbolic `jax.ShapeDtypeStruct`s of a pattern."""
    names = sorted({dim for part in pattern if part for dim in part[0] if isinstance(dim, str)})
    symbols = dict(zip(names, export.symbolic_shape(",".join(names)), strict=True))
    return [
        part and jax.ShapeDtypeStruct(tuple([symbols.get(d, d) for d in part[0]]), part[1], weak_type=part[2])
        for part in pattern
    ]


class Traces:
    """The symbolic traces of one function.

    Args:
        trace: makes something of symbolic structs; it may raise, as many functions need to know their sizes.
    """

    def __init__(self, trace: Callable[[list], Any]) -> None:
        self._trace = trace
        self._found: list[tuple[Pattern, Any]] = []
        self._last: Sequence | None = None
        self._fails = False

    def find(self, avals: Sequence) -> tuple[Any, dict[str, int]] | None:
        """Return a trace that serves avals and the sizes of its symbols, None if there is none."""
        for pattern, trace in self._found:
            sizes = sizes_in(pattern, avals)
            if sizes is not None:
                return trace, sizes
        last, self._last = self._last, avals
        pattern = None if last is None or self._fails else pattern_between(last, avals)
        if pattern is None:
            return None
        try:
            trace = self._trace(structs_of(pattern))
        except Exception:  # of any class: a comparison of sizes, or code that needs an int
            self._fails = True
            return None
        self._found.append((pattern, trace))
        return trace, sizes_in(pattern, avals) or {}
