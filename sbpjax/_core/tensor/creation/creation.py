"""Tensor creation from constants and ranges: local with ``device=``, global with ``placement=`` and ``sbp=``.

A global tensor is made by one program on its placement, each shard on its own device: ``zeros(1 << 40, placement=p,
sbp=split(0))`` never exists in one piece. Its values are those of the local tensor, whatever the sbp. Tensors of given
data are in `from_data`, those with the layout of another one in `like`.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer
from jax.sharding import NamedSharding

from sbpjax._core.compiler.eager import global_ops
from sbpjax._core.jax_private import is_symbolic_dim
from sbpjax._core.runtime import sizes
from sbpjax._core.runtime.ambient_mesh import check_no_manual_axes
from sbpjax.errors import OpError, OpTypeError, PlacementTypeError, SbpTypeError
from sbpjax.sbp import algebra, current_placement
from sbpjax.sbp.layout import Layout
from sbpjax.sbp.placement import placement as Placement

from ..dispatch import abstract
from ..dispatch.op import call_cached, op_of
from ..dispatch.scalars import scalar_array
from ..handle import dtype as dtypes
from ..handle.device import META, PlacementDevice
from ..handle.device import device as Device
from ..handle.mode import mode
from ..handle.tensor import Tensor, wrap_any
from . import host_constants
from .convert import pin
from .number_range import check_fits

# ------------------------------------------------------------------------------------------------- where a tensor goes


# Instead of a device: JAX's default one, regardless of `mode`, and the tensor is not bound to it.
UNBOUND: Any = object()
# New tensors below this number of elements, of any dtype, are made without a check of the memory.
_SMALL = 1 << 24


def resolve_destination(device, placement, sbp, operation: str):
    """Check the device, placement and sbp of a new tensor; return ``(device, placement, sbp)``, resolved."""
    if device is UNBOUND:
        return None, None, None
    if mode.device is not None and device is None and placement is None and sbp is None:
        device = mode.device
    if isinstance(device, PlacementDevice) and placement is None and sbp is None:
        return None, device.placement, device.sbp
    if placement is None and sbp is not None:
        placement = Placement.from_mesh(sbp.mesh) if isinstance(sbp, NamedSharding) else current_placement()
    if placement is None and sbp is None:
        if mode.everywhere is not None:
            return None, *mode.everywhere
        return (None if device is None else Device(device).jax()), None, None
    if placement is not None and not isinstance(placement, Placement):
        raise PlacementTypeError(
            operation,
            f"placement of type {type(placement).__name__}",
            "placement is an sbpjax.placement",
            'placement=sbpjax.placement("cpu", [0, 1])',
        )
    check_no_manual_axes(operation)
    if placement is None or sbp is None or device is not None:
        given = [n for n, v in (("device", device), ("placement", placement), ("sbp", sbp)) if v is not None]
        raise SbpTypeError(
            operation,
            f"only {' and '.join(given)} given" if device is None else f"{', '.join(given)} given together",
            "a global tensor needs placement and sbp together, a local one takes device",
            'placement=sbpjax.placement("cpu", [0, 1]), sbp=sbpjax.sbp.broadcast',
        )
    return None, placement, tuple(sbp) if isinstance(sbp, list) else algebra.in_order(sbp, placement)


def create_tensor(
    fn, static: tuple, inputs, options: tuple[Any, Any, Any], operation: str, requires_grad: bool = False
) -> Tensor:
    """Run a creation function on ``options = (device, placement, sbp)``, and return its tensor."""
    device, placement, sbp = resolve_destination(*options, operation)
    inputs = [x.item() if isinstance(x, np.generic) else x for x in inputs]
    free = _has_free_size(static)
    if not free:
        _check_size(static, device, placement, sbp, operation)
    # In a trace it is part of the program: as a constant it would be broadcast, and held from the trace on.
    if free:
        out = wrap_any(fn(*inputs, **dict(static)))
    elif placement is not None and (mode.capture is not None or any(isinstance(x, Tracer) for x in inputs)):
        out = pin(wrap_any(jnp.asarray(fn(*inputs, **dict(static)))), placement, sbp)
    elif is_created_abstract(device, placement):
        out = abstract.create_abstract(fn, static, inputs, placement, sbp)
    elif (made := _on_host(fn, static, inputs, device, placement, sbp)) is not None:
        out = made
    elif placement is not None:
        # An entry that a plan decides cannot be part of a program's key.
        algebra.parse(sbp, placement)
        (array,), (layout,) = global_ops.execute(
            fn, static, inputs, (None,) * len(inputs), placement=placement, out_sbps=(sbp,)
        )
        out = wrap_any(array, layout)._mark_requested_sum()
    else:
        op = op_of(fn, static)
        inputs = [scalar_array(x) if isinstance(x, (bool, int, float, complex)) else x for x in inputs]
        if device is None:
            out = wrap_any(call_cached(op, inputs))
        else:
            # Made there it is not bound there, and would follow the other inputs of the next op; the user named a
            # device.
            out = wrap_any(jax.device_put(call_cached(op, inputs, device), device))
    return out.requires_grad_() if requires_grad else out


def _check_size(static: tuple, device, placement, sbp, operation: str) -> None:
    """Raise `OutOfMemoryError` unless a tensor of the size in the static attributes fits at this place."""
    options = dict(static)
    shape = options.get("shape")
    if shape is None:
        shape = tuple([options[key] for key in ("length", "steps", "n", "m") if key in options])
    count = math.prod(shape)
    if count and (count if placement is None else count * placement.size) < _SMALL:
        return
    dtype = options.get("dtype") or np.dtype(np.float32)
    sizes.check_bytes(operation, shape, dtype)
    if is_created_abstract(device, placement) or mode.capture is not None:
        return
    if placement is not None:
        sizes.check_layouts(operation, [Layout(placement, sbp, shape, dtype)])
    elif (jax.default_backend() if device is None else device.platform) == "cpu":
        sizes.check_memory(operation, [(shape, dtype)])


def _has_free_size(static: tuple) -> bool:
    """Return whether a shape has the free batch of the program that is being traced."""
    sizes = next((value if name == "shape" else (value,) for name, value in static if name in ("shape", "length")), ())
    return any(map(is_symbolic_dim, sizes))


def _on_host(fn, static: tuple, inputs: list, device, placement, sbp) -> Tensor | None:
    """Return a tensor made without a program of its shape; None if only such a program makes it."""
    if fn is not _constant and fn is not _full:
        draw = host_constants.draw(fn, static, inputs, device, placement, sbp)
        return None if draw is None else draw()
    options = dict(static)
    value = inputs[0] if inputs else options["value"]
    return host_constants.fill_on_host(options["shape"], options["dtype"], value, device, placement, sbp)


def is_created_abstract(device, placement) -> bool:
    """Return whether a new tensor on this device or placement is abstract."""
    if device is META or (placement is not None and not placement.is_present):
        return True
    return mode.abstract and mode.capture is None


def size_of(size: tuple, operation: str) -> tuple[int, ...]:
    """Return a shape given as ``f(2, 3)`` or ``f((2, 3))``."""
    if len(size) == 1 and isinstance(size[0], (tuple, list)):
        size = tuple(size[0])
    if size and isinstance(size[0], bool):  # the first alone, as in PyTorch
        raise OpTypeError(operation, f"size {size!r}", "a size is made of integers, not bool", "e.g. zeros(2, 3)")
    try:
        # The batch of a program with a free batch stays a symbol.
        shape = tuple(n if is_symbolic_dim(n) else int(n.__index__()) for n in size)
    except AttributeError:
        raise OpTypeError(operation, f"size {size!r}", "a size is made of integers", "e.g. zeros(2, 3)") from None
    if any(n < 0 for n in shape):
        raise OpError(operation, f"size {shape}", "no dim is negative", "use sizes of at least 0")
    return shape


# -------------------------------------------------------------------------------------------------- pure functions


def _full(value, /, shape, dtype):
    return lax.full(shape, lax.convert_element_type(value, dtype), dtype)


def _constant(shape, dtype, value):
    return lax.full(shape, value, dtype)


def _arange(start, step, /, length, dtype):
    if dtype.kind in "iu":
        # In int64 for any dtype: in a narrow one the products would overflow on the way.
        index = lax.iota(np.int64, length)
        return lax.convert_element_type(index * jnp.asarray(step, np.int64) + jnp.asarray(start, np.int64), dtype)
    index = lax.convert_element_type(lax.iota(np.int64, length), np.float64)  # torch accumulates in double
    return lax.convert_element_type(index * step + start, dtype)


def _linspace(start, end, /, steps, dtype):
    if dtype.kind in "iu":
        return _integers_between(start, end, steps, dtype)
    wide = np.dtype(np.complex128 if dtype.kind == "c" else np.float64)
    start, end = lax.convert_element_type(start, wide), lax.convert_element_type(end, wide)
    index = lax.convert_element_type(lax.iota(np.int64, steps), wide)
    step = (end - start) / max(steps - 1, 1)
    half = steps // 2  # from both ends, so that both are exact
    values = jnp.where(lax.iota(np.int64, steps) < half, start + step * index, end - step * (steps - 1 - index))
    if steps == 1:
        values = lax.full((1,), start, wide)
    return lax.convert_element_type(values, dtype)


def _integers_between(start, end, steps, dtype):
    """Return `linspace` of integers as PyTorch defines it: its ends, and then what is between them, are truncated.

    Computed in integers, since XLA's fused products and sums would give 5.99... for a 6, which is truncated to 5.
    """
    start, end = lax.convert_element_type(start, np.int64), lax.convert_element_type(end, np.int64)
    rises, count = end >= start, np.uint64(max(steps - 1, 1))
    # Unsigned, it holds the distance of any two numbers.
    distance = lax.convert_element_type(jnp.where(rises, end - start, start - end), np.uint64)
    index = lax.iota(np.uint64, steps)
    rest = distance % count * index
    way = lax.convert_element_type(distance // count * index + rest // count, np.int64)
    values, between = jnp.where(rises, start + way, start - way), rest % count > 0
    values += jnp.where(rises & between & (values < 0), 1, 0) - jnp.where(~rises & between & (values > 0), 1, 0)
    return lax.convert_element_type(values, dtype)


def _logspace(start, end, base, /, steps, dtype):
    wide = np.dtype(np.complex128 if dtype.kind == "c" else np.float64)
    base = lax.convert_element_type(base, wide)
    if dtype.kind not in "iu":
        return lax.convert_element_type(base ** _linspace(start, end, steps=steps, dtype=wide), dtype)
    if steps > 1:  # PyTorch takes the ends of several steps as integers, and computes in float32
        start, end = (jnp.trunc(lax.convert_element_type(x, wide)) for x in (start, end))
    exponents = lax.convert_element_type(_linspace(start, end, steps=steps, dtype=np.dtype(np.float32)), wide)
    return lax.convert_element_type(jnp.trunc(lax.convert_element_type(base**exponents, np.float32)), dtype)


def _eye(n, m, dtype):
    # Two iotas and a comparison: every rank makes its own part of a split result, and nothing is moved.
    rows = lax.broadcasted_iota(np.int64, (n, m), 0)
    return lax.convert_element_type(lax.eq(rows, lax.broadcasted_iota(np.int64, (n, m), 1)), dtype)


# --------------------------------------------------------------------------------------------------- filled


def _float_dtype(dtype) -> np.dtype:
    return dtypes.as_dtype(dtype).np if dtype is not None else dtypes.get_default_dtype().np


def _fill_tensor(value, size, dtype, options, requires_grad, operation) -> Tensor:
    shape = size_of(size, operation)
    static = (("shape", shape), ("dtype", _float_dtype(dtype)), ("value", value))
    return create_tensor(_constant, static, (), options, operation, requires_grad)


def zeros(*size, dtype=None, device=None, placement=None, sbp=None, requires_grad: bool = False) -> Tensor:
    """Return a tensor of zeros.

    Args:
        size: the shape, as numbers or one tuple.
        dtype: the dtype; the default dtype if None.
        device: the device of a local tensor.
        placement: the placement of a global tensor; comes with ``sbp``.
        sbp: the nd-sbp of a global tensor.
        requires_grad: whether ops on it are recorded.

    Raises:
        OpTypeError: a size that is no integer.
        OpError: a negative size.
        SbpTypeError: ``placement`` without ``sbp``, or with a ``device``.

    Example:
        >>> p = flow.placement("cpu", [0, 1])
        >>> x = flow.zeros(2, 3, placement=p, sbp=flow.sbp.split(0))
        >>> x.shape, x.sbp
        (sbpjax.Size([2, 3]), (sbpjax.sbp.split(dim=0),))
    """
    return _fill_tensor(0, size, dtype, (device, placement, sbp), requires_grad, "zeros(...)")


def ones(*size, dtype=None, device=None, placement=None, sbp=None, requires_grad: bool = False) -> Tensor:
    """Return a tensor of ones; arguments as `zeros`.

    Example:
        >>> flow.ones(2, 2)
        tensor([[1., 1.],
                [1., 1.]])
    """
    return _fill_tensor(1, size, dtype, (device, placement, sbp), requires_grad, "ones(...)")


def empty(*size, dtype=None, device=None, placement=None, sbp=None, requires_grad: bool = False) -> Tensor:
    """Return a tensor whose content is not specified (zeros, in fact); arguments as `zeros`.

    Example:
        >>> flow.empty(2, 3).shape
        sbpjax.Size([2, 3])
    """
    return _fill_tensor(0, size, dtype, (device, placement, sbp), requires_grad, "empty(...)")


def full(size, fill_value, dtype=None, device=None, placement=None, sbp=None, requires_grad: bool = False) -> Tensor:
    """Return a tensor of one value; without ``dtype`` the value's own kind decides it.

    Args:
        fill_value: the value.

    Raises:
        OpTypeError: the value is neither a number nor a 0-d tensor.

    Example:
        >>> flow.full((2,), 7.0), flow.full((2,), 7).dtype
        (tensor([7., 7.]), sbpjax.int64)
    """
    if isinstance(fill_value, Tensor):
        dtype = dtype or fill_value.dtype
        fill_value = fill_value.item()
    if not isinstance(fill_value, (bool, int, float, complex, np.generic)):
        rule = "the value is a number or a 0-d tensor"
        raise OpTypeError("full(size, value)", f"a {type(fill_value).__name__}", rule, "full((2, 3), 1.0)")
    shape = size_of((size,) if not isinstance(size, (tuple, list)) else tuple(size), "full(...)")
    found = _dtype_of_number(fill_value, dtype)
    fill_value = number_of(fill_value, found, "full(...)")
    static = (("shape", shape), ("dtype", found))
    return create_tensor(_full, static, (fill_value,), (device, placement, sbp), "full(...)", requires_grad)


def number_of(value, dtype: np.dtype, operation: str):
    """Return a number as an input of a program that makes a tensor of a dtype, which can hold it."""
    check_fits(operation, value, dtype)
    large = isinstance(value, int) and not -(1 << 63) <= value < 1 << 63  # no 64-bit integer holds it
    return float(value) if large and dtype.kind not in "iub" else value


def _dtype_of_number(value, dtype=None) -> np.dtype:
    if dtype is not None:
        return dtypes.as_dtype(dtype).np
    if isinstance(value, (bool, np.bool_)):
        return dtypes.bool_.np
    if isinstance(value, (int, np.integer)):
        return dtypes.int64.np
    if isinstance(value, (complex, np.complexfloating)):
        return dtypes.complex64.np
    return dtypes.get_default_dtype().np


# --------------------------------------------------------------------------------------------------- ranges


def arange(
    start=None, end=None, step=1, dtype=None, device=None, placement=None, sbp=None, requires_grad: bool = False
) -> Tensor:
    """Return ``start, start + step, …`` below ``end``; int64 if all are integers.

    Args:
        start: the first value; 0 if only one number is given.
        end: the values stay below.
        step: their distance.

    Raises:
        OpError: ``step`` is 0, or leads away from ``end``.

    Example:
        >>> flow.arange(1, 10, 3), flow.arange(0.0, 1.0, 0.5)
        (tensor([1, 4, 7]), tensor([0.0000, 0.5000]))
    """
    if end is None:
        start, end = 0, start
    if end is None:
        raise OpTypeError("arange(...)", "no end", "it takes (end) or (start, end, step)", "arange(end=3)")
    if start is None:
        start = 0
    start, end, step = (v.item() if isinstance(v, (Tensor, np.generic)) else v for v in (start, end, step))
    if dtype is not None and step and dtypes.as_dtype(dtype).np.kind in "iu" and not int(step):
        raise OpError(f"arange({start}, {end}, {step})", f"dtype={dtype}", "step must be nonzero", "leave out dtype")
    if step == 0 or (end - start) * step < 0:
        raise OpError(
            f"arange({start}, {end}, {step})",
            f"step {step}",
            "step must be nonzero." if step == 0 else "upper bound and larger bound inconsistent with step sign",
            "swap start and end, or change the step's sign",
        )
    whole = all(isinstance(v, int) or is_symbolic_dim(v) for v in (start, end, step))
    if dtype is None:
        resolved = dtypes.int64.np if whole else dtypes.get_default_dtype().np
    else:
        resolved = dtypes.as_dtype(dtype).np
    if whole:
        length = -((start - end) // step)
    else:
        length = math.ceil((end - start) / step)
    static = (("length", length), ("dtype", resolved))
    return create_tensor(_arange, static, (start, step), (device, placement, sbp), "arange(...)", requires_grad)


def _check_count(operation: str, name: str, value) -> None:
    if not hasattr(value, "__index__"):
        rule = f"{name} is an int"
        raise OpTypeError(operation, f"{name}={value!r} of type {type(value).__name__}", rule, f"{name}=100")
    if value < 0:
        raise OpError(operation, f"{name}={value}", f"number of {name} must be non-negative", f"{name}=100")


def _range_endpoint(operation: str, value):
    """Return an end of a range as a number."""
    if isinstance(value, Tensor) and value.ndim:
        rule = "it only supports 0-dimensional start and end tensors"
        raise OpError(operation, f"a tensor of shape {tuple(value.shape)}", rule, "a number, or x[0]")
    return value.item() if isinstance(value, (Tensor, np.generic)) else value


def _dtype_between(dtype, *ends) -> np.dtype:
    """Return the given dtype, else the default one: a complex one between complex ends."""
    if dtype is None and any(isinstance(v, complex) for v in ends):
        return np.dtype(np.complex128 if dtypes.get_default_dtype() == dtypes.float64 else np.complex64)
    return _float_dtype(dtype)


def linspace(
    start, end, steps: int, dtype=None, device=None, placement=None, sbp=None, requires_grad: bool = False
) -> Tensor:
    """Return ``steps`` evenly spaced values from ``start`` to ``end``, both included.

    Args:
        start: the first value, a number or a 0-d tensor.
        end: the last value, likewise.
        steps: how many.

    Raises:
        OpError: ``steps`` is negative, or an end is a tensor with dims.

    Example:
        >>> flow.linspace(0, 1, 5)
        tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
    """
    _check_count("linspace(...)", "steps", steps)
    start, end = (_range_endpoint("linspace(...)", v) for v in (start, end))
    static = (("steps", int(steps)), ("dtype", _dtype_between(dtype, start, end)))
    return create_tensor(_linspace, static, (start, end), (device, placement, sbp), "linspace(...)", requires_grad)


def logspace(
    start, end, steps: int, base: float = 10.0, dtype=None, device=None, placement=None, sbp=None, requires_grad:
    bool = False
) -> Tensor:  # fmt: skip
    """Return ``base`` to the power of `linspace`."""
    _check_count("logspace(...)", "steps", steps)
    start, end = (_range_endpoint("logspace(...)", v) for v in (start, end))
    static = (("steps", int(steps)), ("dtype", _dtype_between(dtype, start, end)))
    return create_tensor(
        _logspace, static, (start, end, base), (device, placement, sbp), "logspace(...)", requires_grad
    )


def eye(
    n: int, m: int | None = None, *, dtype=None, device=None, placement=None, sbp=None, requires_grad: bool = False
) -> Tensor:
    """Return an ``n`` × ``m`` tensor with ones on the diagonal.

    Args:
        n: the rows.
        m: the columns; as many as rows if None.

    Example:
        >>> flow.eye(2, 3)
        tensor([[1., 0., 0.],
                [0., 1., 0.]])
    """
    shape = size_of((n, n if m is None else m), "eye(...)")
    static = (("n", shape[0]), ("m", shape[1]), ("dtype", _float_dtype(dtype)))
    return create_tensor(_eye, static, (), (device, placement, sbp), "eye(...)", requires_grad)
