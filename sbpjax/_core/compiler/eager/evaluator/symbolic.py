"""Symbolic sizes: an op that meets a second shape is traced once more, for all shapes of the same pattern.

    seen    float32[8, 33, 64] -> reshape(264, 64)     traced with these sizes
    now     float32[8, 34, 64] -> reshape(272, 64)     traced as float32[8, a, 64] -> reshape(8 a, 64)
    later   float32[8, 35, 64] -> reshape(280, 64)     a = 35: nothing is traced

Dims that changed in the same way share a symbol, and one that is a multiple of another is written as such. The first
try is a trace in which all dims of 8 and more are symbolic, also those that have not changed: the convolutions of a net
differ in channels and in pixels. Code that has to know one of them raises there, and the second try has as few symbols
as can be. A dim that is 0 or 1 is never symbolic, since programs broadcast and skip such dims.
"""

from __future__ import annotations

import functools
import itertools
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
from jax import export

from sbpjax._core.jax_private import without_cycles

_RECENT = 8  # signatures that a new one is compared with: one step calls an op with several shapes
_MOST_FAILURES = 8
_SMALL = 8  # sizes below, as of kernels, choose how an op is computed


class Signature(NamedTuple):
    """The sizes among an op's attributes, and the avals of its inputs (None for an absent one)."""

    sizes: tuple[int, ...]
    avals: Sequence


class Multiple(NamedTuple):
    """A symbolic dim: `factor` times a symbol, whose values are `least` or more."""

    factor: int
    symbol: str
    least: int


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


def pattern_of(signatures: Sequence[Signature], fixed: int = 2) -> Pattern | None:
    """Return a pattern that all of some signatures fit; None if they have none in common.

    Args:
        signatures: two or more.
        fixed: dims below this are the same in all; if it is more than 2, all others are symbolic.
    """
    first, *others = signatures
    if not all(_is_alike(first, other) for other in others):
        return None
    columns = list(zip(*map(_sizes_of, signatures), strict=True))
    names: dict[tuple[int, ...], Multiple] = {}
    for column in sorted(set(columns)):
        if min(column) < fixed:
            if len(set(column)) > 1:
                return None
        elif fixed > 2 or len(set(column)) > 1:
            names[column] = _multiple_of(column, names) or Multiple(1, f"n{len(names)}", fixed)
    if not names:
        return None
    dims = iter([names.get(column, column[0]) for column in columns])

    def take_sizes(count: int) -> tuple:
        return tuple(itertools.islice(dims, count))

    sizes = take_sizes(len(first.sizes))
    return Pattern(sizes, tuple([a and (take_sizes(a.ndim), a.dtype, a.weak_type) for a in first.avals]))


def _is_alike(x: Signature, y: Signature) -> bool:
    """Return whether two signatures differ in sizes alone."""
    return (
        len(x.sizes) == len(y.sizes)
        and len(x.avals) == len(y.avals)
        and all(
            a is b if a is None or b is None else a.ndim == b.ndim and a.dtype == b.dtype and a.weak_type == b.weak_type
            for a, b in zip(x.avals, y.avals, strict=True)
        )
    )


def _sizes_of(signature: Signature) -> list[int]:
    return [*signature.sizes, *itertools.chain(*[a.shape for a in signature.avals if a is not None])]


def _multiple_of(column: tuple[int, ...], names: dict[tuple[int, ...], Multiple]) -> Multiple | None:
    """Return the sizes of a dim as a multiple of a symbol that there is, None if they are of none."""
    for other, of in names.items():
        factor = column[0] // other[0]
        if of.factor == 1 and all(m == factor * a for m, a in zip(column, other, strict=True)):
            return Multiple(factor, of.symbol, of.least)
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
            if rest or value < dim.least or values.setdefault(dim.symbol, value) != value:
                return False
        elif dim != n:
            return False
    return True


@functools.lru_cache(maxsize=256)
def structs_of(pattern: Pattern) -> tuple[list, list]:
    """Return the sizes of a pattern and its `jax.ShapeDtypeStruct`s, both symbolic: the same for equal patterns."""
    least = {dim.symbol: dim.least for dim in pattern.dims() if dim.__class__ is Multiple}
    constraints = [f"{name} >= {size}" for name, size in least.items()]
    symbols = dict(zip(least, export.symbolic_shape(",".join(least), constraints=constraints), strict=True))

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
        patterns = self._patterns(now)
        self._recent.append(now)
        for pattern in patterns:
            if pattern.mask() in self._failed or len(self._failed) >= _MOST_FAILURES:
                continue
            try:
                with without_cycles():
                    trace = self._trace(*structs_of(pattern))
            except Exception as error:  # of any class: a comparison of sizes, or code that needs an int
                _drop_frames(error)
                self._failed.add(pattern.mask())
                continue
            self._found.append((pattern, trace))
            return trace, sizes_in(pattern, now) or {}
        return None

    def _patterns(self, now: Signature) -> list[Pattern]:
        """Return a pattern of all recent signatures, and the one with the fewest symbolic dims."""
        pairs = [pattern_of((before, now)) for before in self._recent]
        few = min(filter(None, pairs), key=lambda pattern: sum(pattern.mask()), default=None)
        alike = [before for before in self._recent if pattern_of((before, now), _SMALL)]
        general = pattern_of([*alike, now], _SMALL) if alike and few is not None else None
        return [pattern for pattern in (general, few) if pattern is not None]


def _drop_frames(error: BaseException | None) -> None:
    """Drop the frames of an error of JAX, which refers to itself: they would keep the callers' arrays alive."""
    while error is not None:
        error.__traceback__ = None
        error = error.__cause__ or error.__context__
