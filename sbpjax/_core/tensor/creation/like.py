"""Tensor creation in the layout of another tensor: `zeros_like` etc. and the methods ``x.new_zeros(...)``.

Worked case: ``zeros_like(x)`` of a global x is made on x's placement in x's sbp, by a program there; inside a trace it
is a constant of the program.
"""

from __future__ import annotations

from collections.abc import Sequence

from sbpjax.errors import MixedTensorError, OpTypeError
from sbpjax.sbp import broadcast

from ..dispatch import abstract
from ..handle import dtype as dtypes
from ..handle.tensor import LOCAL, TRACED, Tensor, wrap_any
from . import host_constants
from .convert import _no_partial, pin
from .creation import UNBOUND, _constant, _full, create_tensor, empty, full, number_of, ones, size_of, zeros
from .from_data import tensor


def place_like(x: Tensor, device, placement, sbp, random: bool = False):
    """Return ``(device, placement, sbp)`` of a new tensor: those of ``x`` unless given.

    JAX compiles anew when an input is bound to its device in one call and not in another. So a new tensor is bound as
    ``x`` is: with a part of a model's parameters bound, the second training step would compile its programs again.
    """
    if device is not None:
        return device, placement, sbp
    layout = x._fresh()._layout
    if layout is None:
        if placement is None and sbp is None:
            if x._kind == LOCAL and host_constants.bound_to(x._array) is None:
                return UNBOUND, None, None
            return (x.device if not x._kind or x.is_meta else None), None, None
        return None, placement, sbp
    placement = layout.placement if placement is None else placement
    if sbp is None:
        sbp = x.sbp
        if random:
            # The sum of random summands would not have the requested distribution.
            sbp = _no_partial(sbp)
    return None, placement, sbp


def _like(x: Tensor, value, dtype, device, placement, sbp, requires_grad, operation) -> Tensor:
    if not isinstance(x, Tensor):
        raise OpTypeError(operation, f"a {type(x).__name__}", "the input is a tensor", "pass a tensor")
    static = (("shape", tuple(x.shape)), ("dtype", dtypes.as_dtype(dtype or x.dtype).np), ("value", value))
    if _is_traced(x, device, placement, sbp):
        return _traced_new(x, _constant(**dict(static)), requires_grad)
    if x.is_meta and device is None:
        with abstract.abstract():
            return create_tensor(_constant, static, (), place_like(x, device, placement, sbp), operation, requires_grad)
    return create_tensor(_constant, static, (), place_like(x, device, placement, sbp), operation, requires_grad)


def zeros_like(
    x: Tensor, dtype=None, device=None, placement=None, sbp=None, requires_grad: bool = False, *, memory_format=None
) -> Tensor:
    """Return zeros of the shape, dtype and layout of ``x``, unless others are given.

    Example:
        >>> p = flow.placement("cpu", [0, 1])
        >>> x = flow.ones(4, 2, placement=p, sbp=flow.sbp.split(0))
        >>> flow.zeros_like(x).sbp
        (sbpjax.sbp.split(dim=0),)
    """
    return _like(x, 0, dtype, device, placement, sbp, requires_grad, "zeros_like(x)")


def ones_like(
    x: Tensor, dtype=None, device=None, placement=None, sbp=None, requires_grad: bool = False, *, memory_format=None
) -> Tensor:
    """Return ones of the shape, dtype and layout of ``x``, unless others are given.

    Example:
        >>> flow.ones_like(flow.tensor([1, 2]))
        tensor([1, 1])
    """
    return _like(x, 1, dtype, device, placement, sbp, requires_grad, "ones_like(x)")


def empty_like(
    x: Tensor, dtype=None, device=None, placement=None, sbp=None, requires_grad: bool = False, *, memory_format=None
) -> Tensor:
    """Return an unspecified tensor of the shape, dtype and layout of ``x``, unless others are given."""
    return _like(x, 0, dtype, device, placement, sbp, requires_grad, "empty_like(x)")


def full_like(
    x: Tensor, fill_value, dtype=None, device=None, placement=None, sbp=None, requires_grad: bool = False
) -> Tensor:
    """Return one value in the shape, dtype and layout of ``x``, unless others are given.

    Args:
        fill_value: the value.

    Example:
        >>> flow.full_like(flow.tensor([1.0, 2.0]), 7)
        tensor([7., 7.])
    """
    if isinstance(fill_value, Tensor):
        fill_value = fill_value.item()
    found = dtypes.as_dtype(dtype or x.dtype).np
    fill_value = number_of(fill_value, found, "full_like(x, value)")
    static = (("shape", tuple(x.shape)), ("dtype", found))
    if _is_traced(x, device, placement, sbp):
        return _traced_new(x, _full(fill_value, **dict(static)), requires_grad)
    if x.is_meta and device is None:
        with abstract.abstract():
            return create_tensor(_full, static, (fill_value,), place_like(x, device, placement, sbp), "full_like(x)")
    return create_tensor(
        _full, static, (fill_value,), place_like(x, device, placement, sbp), "full_like(x)", requires_grad
    )


def _traced_new(x: Tensor, array, requires_grad: bool) -> Tensor:
    """Return an array as a constant of the program that ``x`` is traced in, with the known entries of its sbp."""
    out = wrap_any(array)
    if x._layout is not None:
        out = pin(out, x.placement, _drop_excess_splits(x.sbp, array.ndim))
    return out.requires_grad_() if requires_grad else out


def _drop_excess_splits(sbp: tuple, ndim: int) -> tuple:
    """Return an nd-sbp with broadcast for splits of dims that a tensor of ``ndim`` dims does not have."""
    return tuple(broadcast if s.code >= ndim else s for s in sbp)


def _is_traced(x: Tensor, *where) -> bool:
    return x._kind == TRACED and all(w is None for w in where)


def _place_of_new(x: Tensor, ndim: int, device, placement, sbp):
    """Return `place_like`, with broadcast for splits of dims that the new tensor does not have."""
    device, placement, found = place_like(x, device, placement, sbp)
    return device, placement, _drop_excess_splits(found, ndim) if sbp is None and found is not None else found


def _make_new_method(maker):
    def new(
        self: Tensor, *size, dtype=None, device=None, placement=None, sbp=None, requires_grad: bool = False
    ) -> Tensor:
        if _is_traced(self, device, placement, sbp):
            value, shape = 1 if maker.__name__ == "ones" else 0, size_of(size, f"new_{maker.__name__}(...)")
            return _traced_new(self, _constant(shape, dtypes.as_dtype(dtype or self.dtype).np, value), requires_grad)
        keep = self.is_meta and device is None
        ndim = len(size_of(size, f"new_{maker.__name__}(...)"))
        device, placement, sbp = _place_of_new(self, ndim, device, placement, sbp)
        if keep:
            with abstract.abstract():
                return maker(
                    *size, dtype=dtype or self.dtype, placement=placement, sbp=sbp, requires_grad=requires_grad
                )
        return maker(
            *size, dtype=dtype or self.dtype, device=device, placement=placement, sbp=sbp, requires_grad=requires_grad
        )

    new.__name__ = new.__qualname__ = f"new_{maker.__name__}"
    new.__doc__ = f"Return `{maker.__name__}` of a size, with the dtype and layout of this tensor by default."
    return new


new_zeros, new_ones, new_empty = map(_make_new_method, (zeros, ones, empty))


def new_full(
    self: Tensor,
    size: Sequence[int],
    fill_value,
    dtype=None,
    device=None,
    placement=None,
    sbp=None,
    requires_grad=False,
) -> Tensor:
    """Return `full` of a size, with the dtype and layout of this tensor unless others are given."""
    if _is_traced(self, device, placement, sbp) and not isinstance(fill_value, Tensor):
        shape = size_of((size,), "new_full(...)")
        found = dtypes.as_dtype(dtype or self.dtype).np
        return _traced_new(
            self, _constant(shape, found, number_of(fill_value, found, "x.new_full(size, value)")), requires_grad
        )
    keep = self.is_meta and device is None
    device, placement, sbp = _place_of_new(self, len(tuple(size)), device, placement, sbp)
    if keep:
        with abstract.abstract():
            return full(size, fill_value, dtype=dtype or self.dtype, placement=placement, sbp=sbp)
    return full(
        size,
        fill_value,
        dtype=dtype or self.dtype,
        device=device,
        placement=placement,
        sbp=sbp,
        requires_grad=requires_grad,
    )


def new_tensor(self: Tensor, data, dtype=None, device=None, requires_grad=False, placement=None, sbp=None) -> Tensor:
    """Return `tensor` of data with this tensor's dtype unless one is given; on its device if that is local."""
    if self._layout is None:
        device, placement, sbp = place_like(self, device, placement, sbp)
        device = self.device if device is UNBOUND else device  # data that is a tensor may be on another device
    elif placement is None or sbp is None:
        raise MixedTensorError(
            "x.new_tensor(data)",
            f"a global tensor on {self.placement!r}",
            "data for a global tensor needs placement and sbp",
            "x.new_tensor(data, placement=x.placement, sbp=x.sbp)",
        )
    return tensor(
        data, dtype=dtype or self.dtype, device=device, placement=placement, sbp=sbp, requires_grad=requires_grad
    )
