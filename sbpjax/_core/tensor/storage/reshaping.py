"""Reshaping: `view reshape flatten unflatten ravel`, and `view` of the bytes as another dtype.

Worked case: of strides (3, 1), a tensor of shape (2, 3) is viewed as (6,) with stride 1; its transpose, of strides
(1, 3), has no such strides, so `view` raises and `reshape` copies.
"""

from __future__ import annotations

import math

from sbpjax._core.jax_private import is_symbolic_dim
from sbpjax._core.ops import dims as _dims
from sbpjax._core.ops.shapes import arrange
from sbpjax.errors import OpError, OpTypeError

from ..dispatch import dispatch
from ..dispatch.op import op_of
from ..handle.dtype import dtype
from ..handle.tensor import Tensor
from . import lazy_views, view_steps
from .storage import steps_of, strides_of
from .views import cache_view_step, contiguous, known_view, stride, view_of


def _mismatch_text(shape: tuple[int, ...], count: int) -> str:
    """Return the rule that a new shape breaks."""
    if shape.count(-1) > 1:
        return f"only one dimension can be inferred, and shape '{_dims.shape_text(shape)}' has {shape.count(-1)}"
    wrong = next((n for n in shape if n < -1), None)
    if wrong is not None:
        return f"Invalid shape dimension {wrong} in '{_dims.shape_text(shape)}': a size is -1 or not negative"
    return (
        f"shape '{_dims.shape_text(shape)}' is invalid for input of size {count}: sizes multiply to that, one may be -1"
    )


def _shape_for(x: Tensor, shape: tuple, name: str) -> tuple[int, ...]:
    """Return a shape with -1 resolved."""
    if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
        shape = tuple(shape[0])
    try:
        shape = tuple(int(n.__index__()) for n in shape)
    except AttributeError:
        if not any(map(is_symbolic_dim, shape)):  # sizes that an exported graph leaves free
            raise OpTypeError(
                f"{name}{shape}", f"a shape of {shape!r}", "a shape is made of integers", f"x.{name}(2, -1)"
            ) from None
    count = x.shape.numel()
    known = math.prod(n for n in shape if n != -1)
    fits = shape.count(-1) <= 1 and all(n >= -1 for n in shape)
    if fits and -1 in shape:
        fits = known > 0 and count % known == 0
        shape = tuple(count // known if n == -1 and fits else n for n in shape)
    elif fits:
        fits = known == count
    if not fits:
        raise OpError(
            f"{name}{shape}",
            f"a tensor of shape {list(x.shape)} with {count} elements",
            _mismatch_text(shape, count),
            f"x.{name}(-1)",
        )
    return shape


def view(self: Tensor, *shape) -> Tensor:
    """Return the same elements in another shape, sharing storage; with a dtype, the same bytes read as that dtype.

    Args:
        shape: the sizes, as numbers or one tuple; one may be -1. Or a dtype.

    Raises:
        OpError: the number of elements differs, or no strides show the elements in that order; use `reshape` then.

    Example:
        >>> x = flow.arange(6)
        >>> x.view(2, 3)[0, 0] = 9
        >>> x
        tensor([9, 1, 2, 3, 4, 5])
    """
    key = _reshape_key(self, shape)
    found = key and known_view(self, key)
    if found is not None:
        return found
    if len(shape) == 1 and isinstance(shape[0], dtype):
        return _bitcast(self, shape[0])
    shape = _shape_for(self, shape, "view")
    if key is not None:
        cache_view_step(key, view_steps.reshape, (("shape", shape),))
    # Of a global tensor every shape is a view: its shards are no strided memory that could prevent it.
    if self._layout is None and steps_of(self):
        strides = strides_of(self)
        if view_steps.reshaped_strides(self.shape, strides, shape) is None:
            raise OpError(
                f"view{shape}",
                f"shape {list(self.shape)} with strides {list(strides)}",
                "view size is not compatible with input tensor's size and stride "
                "(at least one dimension spans across two contiguous subspaces). Use .reshape(...) instead.",
                "x.reshape(...), which copies where it must",
            )
    return view_of(self, view_steps.reshape, (("shape", shape),))


def reshape(self: Tensor, *shape) -> Tensor:
    """Return the elements in another shape: a view where strides allow it, else a copy.

    Args:
        shape: the sizes, as numbers or one tuple; one may be -1.

    Raises:
        OpError: the number of elements differs.
        OpTypeError: no shape.

    Example:
        >>> p = flow.placement("cpu", [0, 1])
        >>> x = flow.ones(4, 6, placement=p, sbp=flow.sbp.split(0))
        >>> x.reshape(24).sbp, x.reshape(2, 2, -1).shape
        ((sbpjax.sbp.split(dim=0),), sbpjax.Size([2, 2, 6]))
    """
    key = _reshape_key(self, shape)
    found = key and known_view(self, key)
    if found is not None:
        return found
    if not shape and self.numel() != 1:
        raise OpTypeError("reshape()", f"{list(self.shape)}", "shape is a required argument", "x.reshape(-1)")
    shape = _shape_for(self, shape, "reshape")
    if key is not None and shape:
        cache_view_step(key, view_steps.reshape, (("shape", shape),))
    return _reshape_view(self, shape)


def _reshape_key(x: Tensor, shape: tuple) -> tuple | None:
    """Return the key of a reshape of a plain tensor that is no view; None where strides matter, or for lists."""
    # A view's strides decide whether it can be viewed so, and a list is no key.
    if x._kind or (x._meta is not None and x._meta.steps) or (shape and shape[0].__class__ is list):
        return None
    return ("view", x._array.shape, shape)


def _reshape_view(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    if steps_of(x) and view_steps.reshaped_strides(x.shape, strides_of(x), shape) is None:
        return lazy_views.apply_to_view(x, op_of(view_steps.reshape, (("shape", shape),)))
    return view_of(x, view_steps.reshape, (("shape", shape),))


def view_as(self: Tensor, other: Tensor) -> Tensor:
    """Return `view` in the shape of another tensor."""
    return view(self, *other.shape)


def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    """Return `reshape` in the shape of another tensor."""
    return reshape(self, *other.shape)


def flatten(self: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Return the dims from ``start_dim`` to ``end_dim`` as one.

    Args:
        start_dim: the first dim that is joined.
        end_dim: the last one.

    Raises:
        OpError: ``start_dim`` is after ``end_dim``.

    Example:
        >>> flow.ones(2, 3, 4).flatten(1).shape
        sbpjax.Size([2, 12])
    """
    n = self.ndim
    start, end = _dims.one(start_dim, n, "flatten"), _dims.one(end_dim, n, "flatten")
    if n == 0:
        return reshape(self, 1)
    if start > end:
        raise OpError(
            f"flatten({start_dim}, {end_dim})", f"{n} dims", "start_dim cannot come after end_dim", "swap the two"
        )
    if start == end:
        return self
    shape = tuple(self.shape)
    return _reshape_view(self, (*shape[:start], math.prod(shape[start : end + 1]), *shape[end + 1 :]))


def unflatten(self: Tensor, dim: int, sizes) -> Tensor:
    """Return one dim as several."""
    d = _dims.one(dim, self.ndim, "unflatten")
    shape = tuple(self.shape)
    sizes = tuple(sizes)
    if sizes.count(-1) == 1:
        known = math.prod(n for n in sizes if n != -1)
        sizes = tuple(shape[d] // known if n == -1 and known else n for n in sizes)
    return view(self, *_shape_for(self, (*shape[:d], *sizes, *shape[d + 1 :]), "unflatten"))


def ravel(self: Tensor) -> Tensor:
    """Return the elements in one dim: a view of a contiguous tensor, a copy of any other, as in PyTorch."""
    return reshape(contiguous(self), -1)


def _bitcast(x: Tensor, dtype) -> Tensor:
    given, wanted, last = x.dtype.itemsize, dtype.itemsize, x.shape[-1] if x.ndim else 1
    if given != wanted and (not x.ndim or last * given % wanted or stride(x, -1) != 1):
        raise OpError(
            f"view({dtype!r})",
            f"a {x.dtype!r} tensor of shape {list(x.shape)} and strides {list(stride(x))}",
            f"elements of {given} and {wanted} bytes: the last dim has stride 1 and fills whole new elements",
            "x.to(dtype) converts values",
        )
    return dispatch.run(op_of(arrange.view_dtype, (("dtype", dtype.np),)), (x,))
