"""Families of ops: those of one function whose attributes differ in sizes alone, with their symbolic traces.

``x.reshape(8, n, 64)`` is an op of its own for each n, since a shape is an attribute. All of them are one family, and a
trace with a symbolic n serves each.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax

from sbpjax._core.jax_private import without_cycles
from sbpjax._core.runtime.ambient_mesh import hide_mesh
from sbpjax._core.runtime.lru_cache import LRUCache, most_programs

from .symbolic import Traces

# Attributes that are sizes in each op that has them. Others, such as an axis or a power, choose what is computed.
_SIZES = frozenset(("shape", "split_size"))
_families = LRUCache(most_programs())
_MOST_OPS = 8  # with symbolic sizes, of one family


class Family:
    """The ops of one function that differ in sizes among their attributes.

    Args:
        make: makes an op of the family from its sizes, which may be symbolic.

    Attributes:
        calls: traces of the function: its jaxpr, and the tree of its results.
    """

    def __init__(self, make: Callable[[tuple], Any]) -> None:
        # A backward is that of the same op as the call, whose trace is kept.
        self._make = functools.lru_cache(maxsize=_MOST_OPS)(make)
        self._backwards: dict[tuple[int, ...], Traces] = {}
        self.calls = Traces(lambda sizes, structs: trace(self._make(tuple(sizes)), structs))

    def backwards(self, needs: tuple[int, ...], entry: Callable) -> Traces:
        """Return the traces of backwards: what `entry` makes of an op, `needs` and structs."""
        found = self._backwards.get(needs)
        if found is None:
            found = Traces(lambda sizes, structs: entry(self._make(tuple(sizes)), needs, tuple(structs)))
            self._backwards[needs] = found
        return found


@hide_mesh
def trace(op: Any, structs: list) -> tuple:
    """Return the jaxpr and the tree of the results of an op for symbolic structs."""
    with without_cycles():
        closed, shapes = jax.make_jaxpr(op.traced, return_shape=True)(*structs)
    return keep_trace(op, structs, (closed, jax.tree.structure(shapes)))


_traces = LRUCache(256)  # until the backward of the op reads them


def keep_trace(op: Any, avals: Sequence, found: tuple) -> tuple:
    """Keep the trace of an op for `kept_trace`, and return it."""
    return _traces.keep(_key(op, avals), found)


def kept_trace(op: Any, avals: Sequence) -> tuple | None:
    """Return the jaxpr and the tree of the results of an op that was traced for inputs like these, None if none is."""
    return _traces.find(_key(op, avals))


def _key(op: Any, avals: Sequence) -> tuple:
    return op, *[None if a is None else (a.shape, a.dtype, a.weak_type) for a in avals]


def family_of(op: Any) -> tuple[Family, tuple[int, ...]]:
    """Return the family of an op, and the sizes among its attributes."""
    if op.family is None:
        sizes: list[int] = []
        key = _without_sizes(op, sizes)
        family = _families.find(key) or _families.keep(key, Family(lambda found: _with_sizes(key, iter(found))))
        op.family = family, tuple(sizes)
    return op.family


class _Shape(tuple):
    """The key of an op: its class, its function and attributes, without their sizes."""

    __slots__ = ()


_SIZE = object()


def _without_sizes(value: Any, sizes: list[int], are_sizes: bool = False) -> Any:
    """Return a value of attributes with a mark for each size, and list the sizes."""
    if are_sizes and value.__class__ is int:
        sizes.append(value)
        return _SIZE
    if value.__class__ is tuple:
        return tuple([_without_sizes(x, sizes, are_sizes) for x in value])
    if hasattr(value, "traced"):  # an op, also a step of a chain
        static = [(name, _without_sizes(x, sizes, name in _SIZES), x.__class__) for name, x in value.static]
        return _Shape((value.__class__, value.fn, value.name, *static))
    return value


def _with_sizes(key: Any, sizes: Iterator) -> Any:
    """Return what a key stands for, with sizes in place of the marks."""
    if key is _SIZE:
        return next(sizes)
    if key.__class__ is _Shape:
        kind, fn, name, *static = key
        return kind(fn, tuple([(n, _with_sizes(x, sizes)) for n, x, _ in static]), name)
    return tuple([_with_sizes(x, sizes) for x in key]) if key.__class__ is tuple else key
