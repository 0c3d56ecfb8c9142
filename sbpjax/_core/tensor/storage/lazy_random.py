"""Lazy random initialization: the key is taken now, values are generated on first read.

A layer fills its weights, a model fills them again as in its paper, and a checkpoint overwrites both. Only numbers
that are read are drawn: `normal_` and its like take their key from the generator, in its order, and leave the drawing
to the first read.

    w = flow.empty(768, 768)
    w.uniform_(-1, 1)             # takes a key
    w.normal_(0, 0.02)            # takes the next key; the uniform numbers are never drawn
    w.numpy()                     # draws
"""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import jax

from sbpjax._core.jax_private import trace_state_clean
from sbpjax._core.ops.randoms import random

from ..creation import host_constants
from ..creation.creation import resolve_destination
from ..creation.like import place_like
from ..handle import dtype as dtypes
from ..handle.mode import mode
from ..handle.tensor import STORED, Tensor, wrap_any
from .offloaded import OffloadedPayload
from .payload import is_array, put_from
from .storage import Cell, drop_own_cell


class LazyRandom(Cell):
    """Storage of a tensor whose random numbers are not drawn yet, and of its aliases such as ``w.data``.

    Attributes:
        draw: draws them.
        options: ``(device, placement, sbp)`` of the tensor.
        shown: references to the tensors, where there are others.
        lock: held while they are drawn: two threads that read a tensor get one array.
    """

    __slots__ = ("draw", "lock", "options", "shown")

    def __init__(self, draw: Callable[[], Tensor], options: tuple, version: int) -> None:
        super().__init__(None, None, version)
        self.draw, self.options = draw, options
        self.shown: list[weakref.ref[Tensor]] = []
        self.lock = threading.RLock()
        # Never equal to the `_seen = 0` of its tensors, so every reader comes to `materialize`.
        self.stamp = 1

    def materialize(self, x: Tensor) -> None:
        """Draw the numbers. A tensor that is alone has no storage to share afterwards."""
        with self.lock, ExitStack() as stack:
            if x._cell is not self:
                return
            # The reader may be tracing, or have set another default device or disabled 64 bits for its own tensors.
            if not trace_state_clean():
                stack.enter_context(jax.ensure_compile_time_eval())
            stack.enter_context(jax.default_device(None))
            stack.enter_context(jax.enable_x64(True))
            value = self.draw()
            others = self.others(x)
            cell = Cell(value._array, value._layout, self.version) if others else None
            for tensor in (x, *others):
                tensor._hold(value._array, value._layout)
                tensor._ver = self.version
                tensor._cell = cell

    def others(self, x: Tensor) -> list[Tensor]:
        """Return the other tensors that show these numbers."""
        found = [reference() for reference in self.shown]
        return [t for t in found if t is not None and t is not x and t._cell is self]

    def drop(self, x: Tensor) -> bool:
        """Draw the numbers; return whether no other tensor shows them."""
        self.materialize(x)
        return x._cell is None

    def leave(self, x: Tensor) -> bool:
        """Release a tensor that is overwritten; return False, with the numbers drawn, if others show the same."""
        if self.others(x):
            self.materialize(x)
            return False
        x._ver, x._cell = self.version, None
        return True

    def make_detached(self, x: Tensor) -> Tensor:
        """Return a tensor off the tape that shows the same numbers, without drawing them."""
        alias = wrap_any(x._array, x._layout)
        alias._kind, alias._cell, alias._seen, alias._ver = STORED, self, 0, self.version
        alias._own_meta()
        self.shown = [weakref.ref(t) for t in (x, *self.others(x), alias)]
        return alias


def place_to_fill(x: Tensor) -> tuple[Any, Any, Any]:
    """Return ``(device, placement, sbp)`` of random numbers that overwrite a tensor: broadcast where it is a sum."""
    cell = x._cell
    return cell.options if cell.__class__ is LazyRandom else place_like(x, None, None, None, random=True)


def fill(x: Tensor, fn, static: tuple, inputs: tuple, options: tuple, operation: str, then=None) -> bool:
    """Fill a tensor with random numbers; return False where a program of their shape has to draw them.

    Args:
        x: the tensor, which may be written, off the tape.
        fn: a function of `_core.ops.randoms.random`.
        static: its attributes.
        inputs: a key, and numbers.
        options: the result of `place_to_fill`.
        operation: the user's call.
        then: see `host_constants.draw`.
    """
    draw = host_constants.draw(fn, static, list(inputs), *resolve_destination(*options, operation), then)
    if draw is None:
        return False
    sure, at_once = _cannot_fail(fn, static), _traces()
    if is_undrawn(x) and not at_once:
        replace(x, draw if sure else _make_getter(draw()))
    elif sure and not at_once and is_array(x) and drop_own_cell(x):
        x._cell = LazyRandom(draw, options, x._ver + 1)
        x._seen = 0
        x._array = OffloadedPayload(x._array)  # shape and dtype are read all the time, and must not draw
        x._kind = STORED
    else:
        put_from(x, draw())
    return True


def replace(x: Tensor, draw: Callable[[], Tensor]) -> None:
    """Give an undrawn tensor, and those that show the same, another value."""
    cell = x._cell
    if cell.__class__ is LazyRandom:
        with cell.lock:
            if x._cell is cell:
                cell.draw = draw
                if not (x._meta is not None and x._meta.data_alias):  # as for writes to drawn numbers
                    cell.version += 1
                return
    put_from(x, draw())  # another thread has drawn it meanwhile


def _make_getter(value: Tensor) -> Callable[[], Tensor]:
    return lambda: value


def _cannot_fail(fn, static: tuple) -> bool:
    """Return whether a draw cannot fail: a read of the tensor must not raise an error of its filling."""
    options = dict(static)
    if not dtypes.as_dtype(options["dtype"]).is_floating_point:
        return False
    if fn is random.uniform:
        return -math.inf < options["low"] <= options["high"] < math.inf
    return fn is random.normal


def overwrite(x: Tensor, write: Callable[[], Tensor]) -> Tensor:
    """Call a function that writes every element of an undrawn tensor, without drawing its numbers."""
    cell = x._cell
    blank = None
    if not _traces() and not cell.others(x):
        blank = host_constants.fill_on_host(
            tuple(x.shape), x.dtype.np, 0, *resolve_destination(*cell.options, "a write")
        )
    if blank is None:
        x._fresh()
        return write()
    before = x._array, x._layout, x._kind, x._ver
    x._hold(blank._array, blank._layout)
    x._cell, x._ver = None, cell.version
    try:
        return write()
    except BaseException:  # it may not be written, or not with this
        x._array, x._layout, x._kind, x._ver = before
        x._cell, x._seen = cell, 0
        raise


def is_undrawn(x: Any) -> bool:
    """Return whether a tensor's numbers are not drawn yet."""
    return isinstance(x, Tensor) and x._cell.__class__ is LazyRandom


def _traces() -> bool:
    return mode.touch is not None or mode.capture is not None
