"""Symbolic sizes: an op that meets a second shape is traced once more, for all shapes of the same pattern.

    seen    float32[8, 33, 64] -> reshape(264, 64)     traced with these sizes
    now     float32[8, 34, 64] -> reshape(272, 64)     traced as float32[8, a, 64] -> reshape(8 a, 64)
    later   float32[8, 35, 64] -> reshape(280, 64)     a = 35: nothing is traced

Dims that changed in the same way share a symbol, and one that is a multiple of another is written as such. A dim that
is 0 or 1 is never symbolic, since programs broadcast and skip such dims.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
from jax import export

from sbpjax._core.jax_private import without_cycles

_RECENT = 8  # signatures that a new one is compared with: one step calls an op with several shapes
_MOST_FAILURES = 8


class Signature(NamedTuple):
    """The sizes among an op's attributes, and the avals of its inputs (None for an absent one)."""

    sizes: tuple[int, ...]
    avals: Sequence


class Multiple(NamedTuple):
    """A symbolic dim: `factor` times a symbol."""

    factor: int
    symbol: str


class Pattern(NamedTuple):
    """A signature in which some dims are `Multiple`; of an aval the dims, the dtype and the weak type."""

    sizes: tuple[int | Multiple, ...]
    avals: tuple[tuple[tuple[int | Multiple, ...], Any, bool] | None, ...]

    def dims(self) -> Iterator[int | Multiple]:
        yield from self.sizes
        for part in self.avals:
            if part is not None:
                yield from part[0]

    def mask(self) -> tuple[bool, ...]:
        """Return which dims are symbolic."""
        return tuple([dim.__class__ is Multiple for dim in self.dims()])


def pattern_between(before: Signature, now: Signature) -> Pattern | None:
    """Return the pattern of two signatures; None if they have none in common."""
    if len(before.sizes) != len(now.sizes) or len(before.avals) != len(now.avals):
        return None
    pairs = list(zip(before.sizes, now.sizes, strict=True))
    for x, y in zip(before.avals, now.avals, strict=True):
        if x is None or y is None:
            if x is not y:
                return None
        elif x.ndim != y.ndim or x.dtype != y.dtype or x.weak_type != y.weak_type:
            return None
        else:
            pairs += zip(x.shape, y.shape, strict=True)
    names: dict[tuple[int, int], Multiple] = {}
    for m, n in sorted({pair for pair in pairs if pair[0] != pair[1]}):
        if min(m, n) < 2:
            return None
        names[m, n] = _multiple_of(m, n, names) or Multiple(1, f"n{len(names)}")
    if not names:
        return None

    def dims(old: Sequence, new: Sequence) -> tuple:
        return tuple([m if m == n else names[m, n] for m, n in zip(old, new, strict=True)])

    avals = tuple(
        [x and (dims(x.shape, y.shape), x.dtype, x.weak_type) for x, y in zip(before.avals, now.avals, strict=True)]
    )
    return Pattern(dims(before.sizes, now.sizes), avals)


def _multiple_of(m: int, n: int, names: dict[tuple[int, int], Multiple]) -> Multiple | None:
    """Return two sizes of a dim as a multiple of a symbol that there is, None if they are of none."""
    for (a, b), of in names.items():
        if of.factor == 1 and m % a == 0 and n % b == 0 and m // a == n // b:
            return Multiple(m // a, of.symbol)
    return None


def sizes_in(pattern: Pattern, now: Signature) -> dict[str, int] | None:
    """Return the values of a pattern's symbols for a signature, None if it does not fit."""
    values: dict[str, int] = {}
    if len(pattern.avals) != len(now.avals) or not _match_dims(pattern.sizes, now.sizes, values):
        return None
    for part, aval in zip(pattern.avals, now.avals, strict=True):
        if part is None or aval is None:
            if part is not aval:
                return None
            continue
        dims, dtype, weak = part
        if dtype != aval.dtype or weak != aval.weak_type or not _match_dims(dims, aval.shape, values):
            return None
    return values


def _match_dims(dims: Sequence[int | Multiple], shape: Sequence[int], values: dict[str, int]) -> bool:
    """Return whether sizes fit dims, and note the values of new symbols."""
    if len(dims) != len(shape):
        return False
    for dim, n in zip(dims, shape, strict=True):
        if dim.__class__ is Multiple:
            value, rest = divmod(n, dim.factor)
            if rest or value < 2 or values.setdefault(dim.symbol, value) != value:
                return False
        elif dim != n:
            return False
    return True


def structs_of(pattern: Pattern) -> tuple[list, list]:
    """Return the sizes of a pattern and its `jax.ShapeDtypeStruct`s, both symbolic."""
    names = sorted({dim.symbol for dim in pattern.dims() if dim.__class__ is Multiple})
    symbols = dict(zip(names, export.symbolic_shape(",".join(names)), strict=True))

    def symbolic(dims: Sequence) -> list:
        return [dim.factor * symbols[dim.symbol] if dim.__class__ is Multiple else dim for dim in dims]

    structs = [
        part and jax.ShapeDtypeStruct(tuple(symbolic(part[0])), part[1], weak_type=part[2]) for part in pattern.avals
    ]
    return symbolic(pattern.sizes), structs


class Traces:
    """The symbolic traces of one function.

    Args:
        trace: makes something of symbolic sizes and structs; it may raise, as many functions need to know their sizes.
    """

    def __init__(self, trace: Callable[[list, list], Any]) -> None:
        self._trace = trace
        self._found: list[tuple[Pattern, Any]] = []
        self._recent: deque[Signature] = deque(maxlen=_RECENT)
        self._failed: set[tuple[bool, ...]] = set()

    def find(self, now: Signature) -> tuple[Any, dict[str, int]] | None:
        """Return a trace that serves a signature and the values of its symbols, None if there is none."""
        for pattern, trace in self._found:
            values = sizes_in(pattern, now)
            if values is not None:
                return trace, values
        pattern = None if len(self._failed) >= _MOST_FAILURES else self._nearest(now)
        self._recent.append(now)
        if pattern is None:
            return None
        try:
            with without_cycles():
                trace = self._trace(*structs_of(pattern))
        except Exception as error:  # of any class: a comparison of sizes, or code that needs an int
            _drop_frames(error)
            self._failed.add(pattern.mask())
            return None
        self._found.append((pattern, trace))
        return trace, sizes_in(pattern, now) or {}

    def _nearest(self, now: Signature) -> Pattern | None:
        """Return the pattern with the fewest symbolic dims between a signature and a recent one."""
        patterns = [pattern_between(before, now) for before in self._recent]
        usable = [p for p in patterns if p is not None and p.mask() not in self._failed]
        return min(usable, key=lambda p: sum(p.mask()), default=None)


def _drop_frames(error: BaseException | None) -> None:
    """Drop the frames of an error of JAX, which refers to itself: they would keep the callers' arrays alive."""
    while error is not None:
        error.__traceback__ = None
        error = error.__cause__ or error.__context__
