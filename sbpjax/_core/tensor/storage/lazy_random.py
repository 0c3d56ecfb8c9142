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
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import jax

from sbpjax._core.jax_private import trace_state_clean
from sbpjax._core.ops.randoms import random
from sbpjax._core.runtime.ambient_mesh import outside_program

from ..creation import host_constants
from ..creation.creation import resolve_destination
from ..creation.like import place_like
from ..handle import dtype as dtypes
from ..handle.lazy_payload import UNREAD, LazyRoot
from ..handle.mode import mode
from ..handle.tensor import Tensor
from .exchange import commit, make_assigner
from .payload import is_array, put_from
from .storage import defer, drop_own_cell, is_alone


class LazyRandom(LazyRoot):
    """Random numbers that are not drawn yet.

    Attributes:
        draw: draws them.
        options: ``(device, placement, sbp)`` of the tensor.
    """

    __slots__ = ("draw", "options")

    def __init__(self, draw: Callable[[], Tensor], options: tuple, like: Any) -> None:
        super().__init__(like)
        self.draw, self.options = draw, options

    def materialize(self) -> Any:
        """Draw the numbers."""
        with ExitStack() as stack:
            # The reader may be tracing, or have set another default device or disabled 64 bits for its own tensors.
            if not trace_state_clean():
                stack.enter_context(outside_program())
            stack.enter_context(jax.default_device(None))
            stack.enter_context(jax.enable_x64(True))
            return self.draw()._array


def place_to_fill(x: Tensor) -> tuple[Any, Any, Any]:
    """Return ``(device, placement, sbp)`` of random numbers that overwrite a tensor: broadcast where it is a sum."""
    return x._cell.array.options if is_undrawn(x) else place_like(x, None, None, None, random=True)


def fill(x: Tensor, fn, static: tuple, inputs: tuple, options: tuple, operation: str, then=None) -> bool:
    """Fill a tensor with random numbers; return False where a program of their shape has to draw them."""
    draw = host_constants.draw(fn, static, list(inputs), *resolve_destination(*options, operation), then)
    if draw is None:
        return False
    sure, at_once = _cannot_fail(fn, static), _traces()
    if sure and not at_once and _replace(x, draw):
        return True
    if sure and not at_once and drop_own_cell(x) and is_array(x):
        commit(make_assigner(defer(x, LazyRandom(draw, options, x._array), x._ver + 1)))
    else:
        put_from(x, draw())
    return True


def _replace(x: Tensor, draw: Callable[[], Tensor]) -> bool:
    """Let other numbers be drawn for an undrawn tensor, and those that show the same; return whether it was one."""
    cell = x._cell
    lazy = None if cell is None else cell.array
    if lazy.__class__ is not LazyRandom:
        return False
    with lazy.lock:
        if cell.array is not lazy:
            return False  # another thread has drawn it meanwhile
        lazy.draw = draw
        if not (x._meta is not None and x._meta.data_alias):  # as for writes to drawn numbers
            cell.version += 1
    return True


def _cannot_fail(fn, static: tuple) -> bool:
    """Return whether a draw cannot fail: a read of the tensor must not raise an error of its filling."""
    options = dict(static)
    if not dtypes.as_dtype(options["dtype"]).is_floating_point:
        return False
    if fn is random.uniform:
        return -math.inf < options["low"] <= options["high"] < math.inf
    return fn is random.normal


def overwrite(x: Tensor, write: Callable[[], Tensor]) -> Tensor:
    """Call a function that writes every element of a tensor; if it is undrawn, without drawing its numbers."""
    if not is_undrawn(x):
        return write()
    blank = None
    if not _traces() and is_alone(x):
        blank = host_constants.fill_on_host(
            tuple(x.shape), x.dtype.np, 0, *resolve_destination(*place_to_fill(x), "a write")
        )
    if blank is None:
        x._fresh()
        return write()
    before, cell = (x._array, x._layout, x._kind, x._ver), x._cell
    x._hold(blank._array, blank._layout)
    x._cell, x._ver = None, cell.version
    try:
        return write()
    except BaseException:  # it may not be written, or not with this
        x._array, x._layout, x._kind, x._ver = before
        x._cell, x._seen = cell, UNREAD
        raise


def is_undrawn(x: Any) -> bool:
    """Return whether a tensor's numbers are not drawn yet."""
    return isinstance(x, Tensor) and x._cell is not None and x._cell.array.__class__ is LazyRandom


def _traces() -> bool:
    return mode.touch is not None or mode.capture is not None
