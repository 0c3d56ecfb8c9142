"""Storage shared by views: a cell, its version counters, and the propagation of writes to other views.

``v = x[0]; v.mul_(2)`` changes ``x``. Arrays of JAX are immutable, so ``x`` and ``v`` share a `Cell` that holds the
array of the *root*; ``v`` is the root seen through its *steps*, here one ``getitem``. A write to ``v`` is one program
that puts the new value into the root, and increments the cell's stamp; a tensor with an old stamp is read
anew (`regenerate`).

On the tape a view hangs on its *base*. A recorded write to ``v`` gives the base a new node (the put), and ``v``, read
anew, a new view node on that. ``detach()`` and ``.data`` share the cell without sharing the tape: they are their own
base.
"""

from __future__ import annotations

import sys

from sbpjax.errors import OpTypeError
from sbpjax.sbp.abstract import Abstract, no_data

from ..dispatch import dispatch
from ..dispatch.op import op_of
from ..handle.lazy_payload import UNREAD, LazyPayload, LazyRoot
from ..handle.mode import mode
from ..handle.tensor import Tensor, inplace_error, wrap_any
from .lazy_views import LazyView, materialize_view
from .view_steps import STRIDES, apply_steps, contiguous_strides, expand, put, put_row, unfold

# Counted by `sys.getrefcount`, so it holds for CPython only: elsewhere a cell would seem shared, and be kept, which is
# slower and right.
_ALONE = 3  # references to a cell of one tensor: the tensor's, a local name's, the argument's of getrefcount


class Cell:
    """The storage of one root.

    Attributes:
        array: the root's payload, a `LazyRoot` before its first read.
        layout: its layout, None if local.
        stamp: counts every write.
        version: counts the writes that backward must know of: all but those through ``x.data``.
    """

    # Two counters, since PyTorch has two meanings of a write: through ``x.data`` the other views must see it (stamp),
    # but backward must not raise for it (version).
    __slots__ = ("__weakref__", "array", "layout", "stamp", "version")

    def __init__(self, array, layout, version: int) -> None:
        self.array = array
        self.layout = layout
        self.stamp = 0
        self.version = version

    def materialize(self) -> bool:
        """Compute a lazy payload; return whether it was one."""
        lazy = self.array
        if not isinstance(lazy, LazyRoot):
            return False
        with lazy.lock:
            if self.array is lazy:
                self.array = lazy.materialize()
        return True


def cell_of(x: Tensor) -> Cell:
    """Return a tensor's cell, made on first use."""
    if x._cell is None:
        x._cell = Cell(x._array, x._layout, x._ver)
        x._seen = 0
    return x._cell


def storage_of(x: Tensor) -> Cell | None:
    """Return the cell that a tensor shares with its views and aliases; None if it never had any, or is unread."""
    return None if x._cell is None or isinstance(x._cell.array, LazyRoot) else x._cell


def defer(x: Tensor, lazy: LazyRoot, version: int) -> list[tuple]:
    """Return the assignments that give a tensor, alone on its storage, a payload that is computed at its first read."""
    return [(x, "_cell", Cell(lazy, x._layout, version)), (x, "_seen", UNREAD), (x, "_array", lazy)]


def is_alone(x: Tensor) -> bool:
    """Return whether no other tensor shows the storage of a tensor; a view is never alone."""
    cell = x._cell
    # A view keeps its cell even alone: the cell holds more than the view shows.
    return cell is None or not (sys.getrefcount(cell) > _ALONE or steps_of(x) or base_of(x) is not None)


def drop_own_cell(x: Tensor) -> bool:
    """Drop a tensor's cell if no other tensor shows it, and it is read; return whether it has none now."""
    if x._cell is None:
        return True
    if storage_of(x) is None or not is_alone(x):
        return False
    x._fresh()
    x._ver, x._cell = x._cell.version, None
    return True


def share(x: Tensor, alias: Tensor, steps: tuple) -> None:
    """Make ``alias`` show the storage of ``x`` through further steps."""
    alias._cell = cell_of(x)
    alias._seen = UNREAD if isinstance(alias._array, LazyPayload) else alias._cell.stamp
    alias._ver = alias._cell.version
    meta = alias._own_meta()
    meta.steps = (x._meta.steps if x._meta is not None else ()) + steps
    meta.requested_sum = x._meta is not None and x._meta.requested_sum


def alias_of(cell: Cell, steps: tuple) -> Tensor:
    """Return a new tensor, off the tape, that shows a storage through steps from its root."""
    out = wrap_any(cell.array, cell.layout)
    # The payload above is not that of the view.
    out._cell, out._seen = cell, UNREAD
    out._own_meta().steps = steps
    return out._fresh()


def steps_of(x: Tensor) -> tuple:
    """Return the steps from the root of the storage to this tensor."""
    return () if x._meta is None else x._meta.steps


def base_of(x: Tensor) -> Tensor | None:
    """Return the tensor that ``x`` is a differentiable view of."""
    base = None if x._meta is None else x._meta.base
    # A base whose shape was changed in place has a base since, which has its former shape.
    return base if base is None or base._meta is None or base._meta.base is None else base._meta.base


def regenerate(x: Tensor) -> None:
    """Read a tensor anew from its storage, and hang it on its base's new node."""
    cell = x._cell
    if cell is None:  # another thread has read it
        return
    base = base_of(x)
    if cell.materialize():
        x._hold(cell.array, cell.layout)
        x._seen, x._ver = cell.stamp, cell.version
        del cell
        if is_alone(x):  # else every op on a parameter would look at its cell
            x._cell = None
        return
    if x._array.__class__ is LazyView and materialize_view(x):
        pass
    elif base is None:
        steps = steps_of(x)
        if steps:
            _take(x, _select_part(wrap_any(cell.array, cell.layout), steps))
        else:
            x._hold(cell.array, cell.layout)
    else:
        base._fresh()
        # Reading anew repeats the record of a view that was made with the tape on; a ``no_grad`` around the reader
        # must not take it off the tape.
        before, mode.grad = mode.grad, True
        try:
            seen = _select_part(base, steps_of(x)[len(steps_of(base)) :])
        finally:
            mode.grad = before
        _take(x, seen)
        # Made under ``no_grad`` it is a view, but its value is off the tape, as PyTorch has it.
        if seen._edge is not None and not x._meta.no_grad_view:
            x._edge, x._idx = seen._edge, seen._idx
    x._seen = cell.stamp
    x._ver = cell.version


def _take(x: Tensor, other: Tensor) -> None:
    """Give a tensor another one's payload."""
    x._array, x._layout, x._kind = other._array, other._layout, other._kind


def _write_unshared(x: Tensor, value: Tensor) -> None:
    """Write a payload into a tensor without a storage that others show; a lazy payload is not computed for that."""
    version = x._version + 1
    _take(x, value)
    x._ver, x._cell = version, None


def _static(steps: tuple) -> tuple:
    # Starts (``x[i]``) are inputs of the program, not attributes: a loop over ``i`` then compiles one program, not one
    # per ``i``.
    return (("steps", tuple((fn, static, len(starts)) for fn, static, starts in steps)),)


def _starts(steps: tuple) -> tuple:
    return tuple(start for step in steps for start in step[2])


def _select_part(x: Tensor, steps: tuple) -> Tensor:
    return dispatch.run(op_of(apply_steps, _static(steps)), (x, *_starts(steps)))


def _put(root: Tensor, value: Tensor, steps: tuple, function=put) -> Tensor:
    op = op_of(function, _static(steps))
    # A write must not move the storage, even to a layout that the planner prefers: other views expect the old one.
    pins = None if root._layout is None or root._layout.shape is None else (root._layout.sbp,)
    return dispatch.run(op, (root, value, *_starts(steps)), pins)


def write(x: Tensor, value: Tensor) -> None:
    """Give a tensor a new value, seen by all that share its storage.

    Args:
        x: the tensor, already checked as writable.
        value: its new value, of its shape, dtype and layout, on the tape if the write is recorded.
    """
    if mode.touch is not None:
        mode.touch(x)
    # Data would silently be lost.
    if value._array.__class__ is Abstract and x._array.__class__ is not Abstract:
        raise no_data("writing an abstract value into a tensor", f"a tensor with data, {x.dtype.name}{list(x.shape)}")
    # Not shared: the write is a new payload, without a program that puts it into a root.
    if storage_of(x) is None and is_alone(x):
        _write_unshared(x, value)
        if mode.grad and value._edge is not None:
            x._edge, x._idx = value._edge, value._idx
        return
    base, repeated = base_of(x), False
    base = x if base is None else base
    if base is x:
        new = value
    else:
        x._fresh()
        expanded = any(step[0] is expand for step in steps_of(x))
        # A row of an expanded tensor shows each element once, and may be written; the whole may not, but with one value
        # for all.
        repeated = expanded and find_repeating_step(x) is not None
        new = _put(base, value, steps_of(x)[len(steps_of(base)) :], put_row if expanded and not repeated else put)
    if mode.grad and new._edge is not None:
        base._edge, base._idx = new._edge, new._idx
    _commit(x, base, new)
    # Off the tape the value is known already; without this the next read would cut it out of the root again.
    if base is not x and base._edge is None and not repeated:  # one write to a repeated element shows everywhere
        _take(x, value)
        x._seen, x._ver = x._cell.stamp, x._cell.version


def strides_of(x: Tensor) -> tuple[int, ...]:
    """Return the strides, in elements, that the view would have in one piece of row-major memory."""
    chain = steps_of(x)
    if not chain or x._cell is None:
        return contiguous_strides(x.shape)
    cell = x._cell
    shape = tuple(cell.array.shape if cell.layout is None or cell.layout.shape is None else cell.layout.shape)
    strides = contiguous_strides(shape)
    for fn, static, starts in chain:
        shape, strides = STRIDES[fn](shape, strides, *starts, **dict(static))
        # A reshape of a global tensor that copies in memory terms.
        if strides is None:
            strides = contiguous_strides(shape)
    return strides


def find_repeating_step(x: Tensor) -> str | None:
    """Return the step by which a view shows an element of its storage more than once, None if it does not.

    One row of an expanded tensor shows its elements once.
    """
    chain = steps_of(x)
    if not chain or 0 in x.shape:
        return None
    if any(fn is unfold and dict(static)["step"] < dict(static)["size"] for fn, static, _ in chain):
        return "unfold"
    if any(fn is expand for fn, _, _ in chain):
        if any(n > 1 and k == 0 for n, k in zip(x.shape, strides_of(x), strict=True)):
            return "expand"
    return None


def _commit(x: Tensor, base: Tensor, new: Tensor) -> None:
    """Store the new value of ``base`` in the root and count the write."""
    cell = x._cell
    steps = steps_of(base)
    if steps:
        root = _put(wrap_any(cell.array, cell.layout), wrap_any(new._array, new._layout), steps)
        cell.array, cell.layout = root._array, root._layout
    else:
        cell.array, cell.layout = new._array, new._layout
    cell.stamp += 1
    # As in PyTorch, writes through ``x.data`` are not seen by backward.
    if not (x._meta is not None and x._meta.data_alias):
        cell.version += 1
    _take(base, new)
    base._seen, base._ver = cell.stamp, cell.version


def set_payload(x: Tensor, array, layout) -> None:
    """Replace the payload of a tensor that shares storage, without the tape."""
    value = wrap_any(array, layout)
    if storage_of(x) is None and is_alone(x):
        _write_unshared(x, value)
        return
    if steps_of(x) and _place(layout) != _place(x._cell.layout):
        set_data(x, value)  # memory on other devices is no part of the old one, as after `x.data = x.to_global(...)`
        return
    base = base_of(x)
    base = x if base is None else base
    if base is x:
        _commit(x, x, value)
    else:
        before, mode.grad = mode.grad, False
        try:
            _commit(x, base, _put(base, value, steps_of(x)[len(steps_of(base)) :]))
        finally:
            mode.grad = before


def _place(layout):
    return None if layout is None else layout.placement


def retarget_view(x: Tensor, view: Tensor) -> Tensor:
    """Make a view show the same part as a view of it, and return it."""
    if view is not x:
        x._own_meta().steps = steps_of(view)
        _take(x, view._fresh())
        x._edge, x._idx, x._seen, x._ver = view._edge, view._idx, view._seen, view._ver
    return x


def reshape_to(x: Tensor, out: Tensor) -> Tensor:
    """Make a tensor that is alone on its storage the result of an op on it, of any shape, and return it."""
    _take(x, out._fresh())
    if out._edge is not None:
        x._edge, x._idx = out._edge, out._idx
    x._ver += 1
    return x


def root_of(x: Tensor) -> Tensor:
    """Return a tensor over the whole storage of ``x``; on the tape where ``x`` is."""
    x._fresh()
    if not steps_of(x):
        return x
    base = base_of(x)
    # The base itself, so that ops on the root are on the tape where the user's tensor is.
    if base is not None and not steps_of(base):
        return base
    cell = cell_of(x)
    root = wrap_any(cell.array, cell.layout)
    root._cell, root._seen, root._ver = cell, cell.stamp, cell.version
    return root


def detach(self: Tensor) -> Tensor:
    """Return a tensor over the same storage that is a leaf without grad.

    Returns:
        The same shape, dtype and sbp.

    Example:
        >>> x = flow.ones(2, requires_grad=True)
        >>> (x * 2).detach().requires_grad
        False
    """
    if storage_of(self) is not None:
        self._fresh()
    out = wrap_any(self._array, self._layout)
    share(self, out, ())
    return out


def detach_(self: Tensor) -> Tensor:
    """Take the tensor off the tape, in place."""
    self._fresh()
    if base_of(self) is not None:
        raise inplace_error("x.detach_()", "a view", "Can't detach views in-place", "use x.detach()")
    self._edge, self._idx = None, 0
    return self


def data(self: Tensor) -> Tensor:
    """`detach`, but writes through it do not count as changes for backward."""
    out = detach(self)
    out._meta.data_alias = True
    return out


def set_data(self: Tensor, value: Tensor) -> None:
    """Make a tensor show another tensor's storage; grad and tape stay."""
    if not isinstance(value, Tensor):
        fix = "x.data = sbpjax.tensor(value)"
        raise OpTypeError("x.data = value", f"a {type(value).__name__}", "data is a tensor", fix)
    if storage_of(self) is not None:  # an unread one need not be computed for this
        self._fresh()
    value._fresh()
    meta = self._own_meta()
    # From here on it is a tensor of its own: a later write reaches the new storage, not its former base.
    meta.base = None
    meta.steps = steps_of(value)
    self._cell = cell_of(value)
    self._seen, self._ver = self._cell.stamp, self._cell.version
    _take(self, value)
