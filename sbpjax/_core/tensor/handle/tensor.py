"""`Tensor`: a mutable handle on a payload, with its place on the tape.

The payload of a local tensor is a `jax.Array`; of a global tensor the physical `jax.Array` with its `Layout`; inside
a trace a tracer. This file has the slots; operators and methods are in the list `_core.functions.tensor_methods` and
in the table of ops:

    _array   the payload              _layout  None for a local tensor
    _edge    node on the tape         _idx     which output of that node
    _ver     version, for backward    _kind    the kind of the payload, see below: it decides which way an op goes
    _cell    storage shared with views and aliases, or None; _seen is the stamp at which `_array` was read from it,
             `UNREAD` of a `LazyPayload`
    _meta    `.grad`, base and steps of a view, retain_grad: nothing a plain result needs
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jax.core import Tracer

from sbpjax._core.jax_private import ArrayImpl
from sbpjax._core.tensor.nodes.node import AccumulateGrad
from sbpjax.errors import AutogradError, InplaceError, MixedTensorError, OpTypeError
from sbpjax.sbp.abstract import Abstract

from . import dtype as dtypes
from .device import PlacementDevice, device, from_jax_device
from .lazy_payload import LazyPayload
from .mode import mode
from .size import Size

LOCAL, OTHER, ABSTRACT, PLACED, TRACED = range(5)
"""Kinds of tensors, by rising precedence: an op on several kinds runs as for the last.

`LOCAL`: an array on one device; `OTHER`: one that is no plain `jax.Array`, as random keys; `ABSTRACT`: no data, on no
placement; `PLACED`: on a placement, with data or without; `TRACED`: a tracer. Lazy payloads have the kind of their
array.
"""


def kind_of(array, layout) -> int:
    """Return the kind of a tensor with this payload."""
    if array.__class__ is ArrayImpl:
        return LOCAL if layout is None else PLACED
    if isinstance(array, Tracer):
        return TRACED
    if layout is not None:
        return PLACED
    return ABSTRACT if array.__class__ is Abstract else LOCAL if isinstance(array, LazyPayload) else OTHER


class Meta:
    """Rare attributes of a tensor, allocated on first use.

    Attributes:
        grad: the accumulated gradient.
        base: the tensor that a differentiable view is of.
        steps: the view steps from the storage's root to this tensor.
        kept: of a tensor that a compiled step left where its function keeps it: ``"constant"`` or ``"output"``, see
            `_core.tracing.escaped_tensors`; else None.
        multi: whether the view is one of several that one op returned.
        no_grad_view: whether the view, or what it is a view of, was made under ``no_grad``.
        data_alias: whether writes leave the version alone (``x.data``).
        row_table: of a parameter that holds some rows of a larger table: called with every optimizer that takes it.
        whole: of a local tensor that a step made: whether it is the same in every process.
        zeroed: an array of zeros that `zero_grads` gave the gradient, which is never written.
        requested_sum: whether the user requested ``partial_sum`` for the storage; one of an op may be converted.
    """

    __slots__ = (
        "requested_sum",
        "base",
        "by_rows",
        "data_alias",
        "grad",
        "kept",
        "multi",
        "no_grad_view",
        "row_table",
        "steps",
        "whole",
        "zeroed",
    )

    grad: Any
    base: Any
    kept: str | None

    def __init__(self) -> None:
        self.grad = self.base = self.kept = self.zeroed = self.row_table = None
        self.steps = ()
        self.multi = self.data_alias = self.no_grad_view = self.requested_sum = self.by_rows = self.whole = False


# The stub of this base, which `make stubs` writes, has the methods of `_core.functions.tensor_methods` and of the rows.
if TYPE_CHECKING:
    from sbpjax.sbp import Layout
    from sbpjax.sbp import sbp as Sbp
    from sbpjax.sbp.placement import placement as Placement

    from .attached import Attached
    from .device import device as Device
    from .types import DTypeLike
else:
    Attached = object


class Tensor(Attached):
    """A multi-dimensional array that records the ops on it for autograd.

    Make one with `sbpjax.tensor`, `sbpjax.zeros` etc. ``Tensor(2, 3)`` gives an uninitialised float32
    tensor of that shape, ``Tensor([1, 2])`` one with that content.
    """

    __slots__ = (
        # With a dict, since PyTorch's users set attributes on tensors; it is made only when one does.
        "__dict__", "__weakref__", "_array", "_cell", "_edge", "_idx", "_kind", "_layout", "_meta", "_seen", "_ver",
    )  # fmt: skip

    _array: Any
    _cell: Any
    _edge: Any
    _idx: int
    _kind: int
    _layout: Any
    _meta: Any
    _seen: int
    _ver: int

    __array_priority__ = 1000  # NumPy leaves `array + tensor` to this class

    def __init__(self, *data, **options) -> None:
        if self.__class__.__new__ is not object.__new__:  # a subclass whose own `__new__` has made the tensor
            return
        self._adopt(self._made_of(data, options))

    def _adopt(self, other: Tensor) -> None:
        """Take over another tensor's payload, as a leaf without grad."""
        self._hold(other._array, other._layout)
        self._edge = self._cell = self._meta = None
        self._idx = self._ver = 0

    def _hold(self, array, layout) -> None:
        """Take a payload, and nothing else: the caller updates the version, the tape and the storage."""
        self._array = array
        self._layout = layout
        self._kind = kind_of(array, layout)
        if self._kind == TRACED and mode.made is not None:
            mode.made.append(weakref.ref(self))

    # ------------------------------------------------------------------------------------------------ properties

    @property
    def shape(self) -> Size:
        """The logical shape."""
        layout = self._layout
        if layout is None or layout.shape is None:
            return Size(self._array.shape)
        return Size(layout.shape)

    @property
    def dtype(self) -> dtypes.dtype:
        """The element type."""
        return dtypes._BY_NP[self._array.dtype]

    @property
    def ndim(self) -> int:
        """The number of dims."""
        if not self._kind:
            return len(self._array.shape)
        return len(self.shape)

    @property
    def layout(self) -> Layout | None:
        """The `sbpjax.sbp.Layout` of a global tensor, None for a local one."""
        return self._layout

    @property
    def is_global(self) -> bool:
        """Whether the tensor is on a placement."""
        return self._layout is not None

    @property
    def is_local(self) -> bool:
        """Whether the tensor is on one device."""
        return self._layout is None

    @property
    def is_lazy(self) -> bool:
        """Whether the payload is a tracer of a compiled program."""
        return self._kind == TRACED and self._layout is None

    @property
    def placement(self) -> Placement:
        """The placement of a global tensor."""
        if self._layout is None:
            raise self._kind_error(
                "placement", "Only global tensors have 'placement'. Please use '.device' for local tensors.", "x.device"
            )
        return self._layout.placement

    @property
    def sbp(self) -> tuple[Sbp, ...]:
        """The nd-sbp of a global tensor; in a traced program entries may be decided by the plan."""
        layout = self._layout
        if layout is None:
            raise self._kind_error("sbp", "Local tensor has no sbp property: it is on one device", "x.device")
        return layout.sbp if layout.shape is not None else layout.sbp_of(self._fresh()._array)

    @property
    def device(self) -> Device:
        """The device of a local tensor; of a global one its placement, as a `PlacementDevice` for new tensors."""
        if self._layout is not None:
            return PlacementDevice(self._layout.placement)
        if self._kind:
            if self.is_meta:
                return device("meta")
            return device(jax.local_devices()[0])
        sharding = self._array.sharding
        return from_jax_device(getattr(sharding, "_device", None) or next(iter(sharding.device_set)))

    def _kind_error(self, name: str, rule: str, instead: str) -> Exception:
        kind = "local" if self._layout is None else "global"
        if self._kind == TRACED and mode.capture is None:
            rule = "inside a function of JAX a tensor has the type of its array, and no layout of its own"
            instead = "jax.typeof(x.jax()), whose sharding shows Explicit axes"
        return MixedTensorError(
            f"x.{name} of a {kind} tensor", f"{self.dtype.name}{list(self.shape)}", rule, f"use {instead}"
        )

    # ------------------------------------------------------------------------------------------------ the tape

    @property
    def requires_grad(self) -> bool:
        """Whether ops on this tensor are recorded."""
        self._fresh_edge()
        return self._edge is not None

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Set whether a leaf gets a gradient, in place, and return the tensor.

        Args:
            requires_grad: whether it gets one.

        Returns:
            The tensor; its gradient has its sbp.

        Raises:
            AutogradError: the dtype has no gradient, or `requires_grad` is False for a tensor that is no leaf.

        Example:
            >>> flow.ones(2).requires_grad_().requires_grad
            True
        """
        self._fresh_edge()
        if requires_grad not in (True, False):
            rule = "requires_grad must be a bool"
            raise OpTypeError("x.requires_grad = value", repr(requires_grad)[:60], rule, "True or False")
        if bool(requires_grad) == (self._edge is not None):
            return self
        if requires_grad:
            if not (self.dtype.is_floating_point or self.dtype.is_complex):
                raise AutogradError(
                    "requires_grad_()",
                    f"a {self.dtype!r} tensor",
                    "only Tensors of floating point can require gradients, and of complex dtype",
                    "x.float().requires_grad_()",
                )
            if self._meta is not None and self._meta.base is not None:
                self._fresh()  # views of a lazy view would lead past it to the base
            self._edge = AccumulateGrad(self)
            self._idx = 0
            return self
        if not self.is_leaf:
            raise AutogradError(
                "requires_grad_(False)",
                f"a tensor with grad_fn={self.grad_fn!r}",
                "the flag can be changed on leaf tensors only",
                "use x.detach()",
            )
        self._edge = None
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether the tensor was not computed by a recorded op."""
        self._fresh_edge()
        return self._edge is None or self._edge.__class__ is AccumulateGrad

    @property
    def grad_fn(self) -> object | None:
        """The tape's node of a computed tensor; None for a leaf."""
        self._fresh()
        return None if self._edge.__class__ is AccumulateGrad else self._edge

    @property
    def output_nr(self) -> int:
        """Which output of its `grad_fn` the tensor is."""
        return self._idx

    @property
    def grad(self) -> Tensor | None:
        """The gradient that backward accumulated."""
        meta = self._meta
        return None if meta is None else meta.grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if mode.touch is not None:
            mode.touch(self)
        if value is None:
            if self._meta is not None:
                self._meta.grad = None
            return
        if not isinstance(value, Tensor):
            raise OpTypeError(
                "x.grad = value", f"a {type(value).__name__}", "a grad is a Tensor or None", "x.grad = None"
            )
        if value.shape != self.shape or value.dtype != self.dtype:
            raise AutogradError(
                "x.grad = value",
                f"a grad of {value.dtype.name}{list(value.shape)} for {self.dtype.name}{list(self.shape)}",
                "a grad has the shape and dtype of its tensor",
                "x.grad = value.reshape(x.shape).to(x.dtype)",
            )
        mine, other = self._layout, value._fresh()._layout
        if (mine is None) != (other is None) or (mine is not None and mine.placement != other.placement):
            raise self._mixed("x.grad = value", (self, value))
        self._own_meta().grad = value

    @grad.deleter
    def grad(self) -> None:
        if self._meta is not None:
            self._meta.grad = None

    @property
    def retains_grad(self) -> bool:
        """Whether a computed tensor keeps its gradient."""
        edge = self._edge
        return edge is not None and edge.hooks is not None and edge.hooks.retain.get(self._idx) is not None

    @property
    def _version(self) -> int:
        return self._cell.version if self._cell is not None else self._ver

    def _own_meta(self) -> Meta:
        if self._meta is None:
            self._meta = Meta()
        return self._meta

    def _mark_requested_sum(self) -> Tensor:
        """Mark the layout as the user's own; a partial sum then allows linear in-place ops only."""
        layout = self._layout
        if layout is not None and layout.shape is not None and layout.partial_axes:
            self._own_meta().requested_sum = True
        return self

    def _fresh(self) -> Tensor:
        """Bring the payload up to date after a write through a view or base, and materialize a lazy one."""
        if self._cell is not None and self._cell.stamp != self._seen:
            self._regenerate()
        return self

    def _fresh_edge(self) -> None:
        """Bring the place on the tape up to date; only that of a differentiable view that was written can be old."""
        if self._meta is not None and self._meta.base is not None:
            lazy = self._array
            # A condition on it would otherwise run every lazy view.
            if not isinstance(lazy, LazyPayload) or lazy.stamp != self._cell.stamp:
                self._fresh()

    def _set(self, array, layout=None) -> None:
        """Replace the payload and count a version; the caller updates the tape."""
        if mode.touch is not None:
            mode.touch(self)
        if self._cell is not None:
            self._set_payload(array, layout)
            return
        # `_hold` without a call: every backward and `zero_grad` does it per parameter.
        self._array = array
        self._layout = layout
        self._kind = LOCAL if layout is None and array.__class__ is ArrayImpl else kind_of(array, layout)
        self._ver += 1

    # ------------------------------------------------------------------------------------------------ protocols

    def __hash__(self) -> int:
        # `__eq__` compares elements, so Python would leave the class without a hash.
        return id(self)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        array = self.numpy()
        return array if dtype is None else array.astype(dtype)

    def __len__(self) -> int:
        shape = self.shape
        if not shape:
            raise OpTypeError(
                "len(x)", "a 0-d tensor", "only a tensor with dims has a length", "x.numel() counts its elements"
            )
        return shape[0]


_new = Tensor.__new__


def wrap(array) -> Tensor:
    """Return a plain local tensor without grad over an array."""
    t = _new(Tensor)
    t._array = array
    t._layout = t._edge = t._cell = t._meta = None
    t._idx = t._ver = 0
    t._kind = LOCAL
    return t


def wrap_any(array, layout=None) -> Tensor:
    """Return a tensor over any payload: a local array, a physical array with its layout, or a tracer."""
    t = _new(Tensor)
    t._array = array
    t._layout = layout
    t._kind = kind_of(array, layout)
    t._edge = t._cell = t._meta = None
    t._idx = t._ver = 0
    if t._kind == TRACED and mode.made is not None:
        mode.made.append(weakref.ref(t))
    return t


def restore(array, layout, edge, idx: int) -> Tensor:
    """Return a tensor that sits on the tape where a saved one sat."""
    t = wrap_any(array, layout)
    t._edge = edge
    t._idx = idx
    return t


def inplace_error(operation: str, seen: str, rule: str, fix: str) -> InplaceError:
    """Return the error for a write that is not allowed."""
    return InplaceError(operation, seen, rule, fix)
