"""Making tensors: from data, filled, ranges; local with ``device=``, global with ``placement=`` and ``sbp=``.

A global tensor is made by one program on its placement, each shard on its own device: ``zeros(1 << 40, placement=p,
sbp=split(0))`` never exists in one piece. Its values are those of the local tensor, whatever the sbp.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax._src.core import trace_state_clean  # no public name
from jax.core import Tracer

from sbpjax.errors import (
    MixedTensorError,
    OpError,
    OpTypeError,
    OpValueError,
    PlacementTypeError,
    SbpError,
    SbpTypeError,
    message,
)
from sbpjax.sbp import algebra, current_placement, eager
from sbpjax.sbp.placement import placement as Placement

from . import abstract, dispatch
from . import dtype as dtypes
from .binding import publish
from .device import META, PlacementDevice
from .device import device as Device
from .mode import mode
from .op import call_kept, op_of
from .tensor import Tensor, attach

# ------------------------------------------------------------------------------------------------- where a tensor goes


def where_to(device, placement, sbp, asked: str):
    """Check the three arguments that say where a new tensor lies; return ``(device, placement, sbp)``, resolved.

    Raises:
        SbpTypeError: ``placement`` and ``sbp`` do not come together, or come with ``device``.
    """
    if mode.device is not None and device is None and placement is None and sbp is None:
        device = mode.device
    if isinstance(device, PlacementDevice) and placement is None and sbp is None:
        return None, device.placement, device.sbp
    if placement is None and sbp is not None:
        placement = current_placement()
    if placement is None and sbp is None:
        if mode.everywhere is not None:
            return None, *mode.everywhere
        return (None if device is None else Device(device).jax()), None, None
    if placement is not None and not isinstance(placement, Placement):
        raise PlacementTypeError(
            message(
                asked,
                f"placement of type {type(placement).__name__}",
                "placement is a sbpjax.placement",
                'placement=sbpjax.placement("cpu", [0, 1])',
            )
        )
    if placement is None or sbp is None or device is not None:
        given = [n for n, v in (("device", device), ("placement", placement), ("sbp", sbp)) if v is not None]
        raise SbpTypeError(
            message(
                asked,
                f"only {' and '.join(given)} given" if device is None else f"{', '.join(given)} given together",
                "a global tensor needs placement and sbp together, a local one takes device",
                'placement=sbpjax.placement("cpu", [0, 1]), sbp=sbpjax.sbp.broadcast',
            )
        )
    return None, placement, tuple(sbp) if isinstance(sbp, list) else sbp


def make(fn, static: tuple, inputs, options: tuple[Any, Any, Any], asked: str, requires_grad: bool = False) -> Tensor:
    """Run a creating function where ``options = (device, placement, sbp)`` say, and return its tensor."""
    device, placement, sbp = where_to(*options, asked)
    if placement is not None and (mode.lift is not None or any(isinstance(x, Tracer) for x in inputs)):
        from sbpjax.sbp.boxing_marker import to_sbp

        from .traced import TracedLayout

        out = dispatch.wrap_any(
            to_sbp(jnp.asarray(fn(*inputs, **dict(static))), placement, sbp), TracedLayout(placement)
        )
    elif without_data(device, placement):
        out = abstract.made_by(fn, static, inputs, placement, sbp)
    elif fn in (_constant, _full) and (filled := _by_hand(static, inputs, device, placement, sbp)) is not None:
        out = filled
    elif placement is not None:
        (array,), (layout,) = eager.execute(
            fn, static, inputs, (None,) * len(inputs), placement=placement, out_sbps=(sbp,)
        )
        out = dispatch.wrap_any(array, layout)._as_asked()
    else:
        op = op_of(fn, static)
        inputs = [dispatch.scalar_array(x) if isinstance(x, (bool, int, float, complex)) else x for x in inputs]
        if device is None:
            out = dispatch.wrap_any(call_kept(op, inputs))
        else:
            out = dispatch.wrap(jax.device_put(call_kept(op, inputs, device), device))
    return out.requires_grad_() if requires_grad else out


# A program that fills takes milliseconds to lower: small constants of a kind are filled on the host, until so many of
# them were made that a program pays.
_BY_HAND_BYTES = 1 << 16
_BY_HAND_TIMES = 4
_by_hand_times: dict = {}


def _by_hand(static: tuple, inputs, device, placement, sbp) -> Tensor | None:
    """Return a small constant filled on the host, or None where a program is to make it."""
    options = dict(static)
    shape, dtype = options["shape"], options["dtype"]
    value = inputs[0] if inputs else options["value"]
    plain = type(value) in (bool, int, float) and (value in (0, 1) or (dtype.kind == "f" and abs(value) < 1e4))
    if not plain or math.prod(shape) * dtype.itemsize > _BY_HAND_BYTES or not trace_state_clean():
        return None
    key = (shape, dtype, device, placement)
    times = _by_hand_times[key] = _by_hand_times.get(key, 0) + 1
    if times > _BY_HAND_TIMES:
        return None
    if placement is None:
        return dispatch.wrap(jax.device_put(np.full(shape, value, dtype), device, may_alias=False))
    try:
        codes = algebra.parse(sbp, placement.hierarchy, len(shape))
    except SbpError:  # planning will say what is wrong with it
        return None
    if algebra.P in codes:
        return None
    return dispatch.wrap_any(*eager.from_logical(np.full(shape, value, dtype), placement, sbp))._as_asked()


def without_data(device, placement) -> bool:
    """Return whether a tensor that is made now, at this place, is abstract."""
    if device is META or (placement is not None and not placement.is_present):
        return True
    return mode.abstract and mode.lift is None


def size_of(size: tuple, asked: str) -> tuple[int, ...]:
    """Return a shape given as ``f(2, 3)`` or ``f((2, 3))``."""
    if len(size) == 1 and isinstance(size[0], (tuple, list)):
        size = tuple(size[0])
    try:
        shape = tuple(int(n.__index__()) for n in size)
    except AttributeError:
        raise OpTypeError(message(asked, f"size {size!r}", "a size is made of integers", "e.g. zeros(2, 3)")) from None
    if any(n < 0 for n in shape):
        raise OpError(message(asked, f"size {shape}", "no dim is negative", "use sizes of at least 0"))
    return shape


# -------------------------------------------------------------------------------------------------------- pure
# functions


def _full(value, /, shape, dtype):
    return lax.full(shape, lax.convert_element_type(value, dtype), dtype)


def _constant(shape, dtype, value):
    return lax.full(shape, value, dtype)


def _arange(start, step, /, length, dtype):
    if dtype.kind in "iu":
        index = lax.iota(np.int64, length)
        return lax.convert_element_type(index * jnp.asarray(step, np.int64) + jnp.asarray(start, np.int64), dtype)
    index = lax.convert_element_type(lax.iota(np.int64, length), np.float64)  # torch accumulates in double
    return lax.convert_element_type(index * step + start, dtype)


def _linspace(start, end, /, steps, dtype):
    wide = np.dtype(np.float64)
    start, end = lax.convert_element_type(start, wide), lax.convert_element_type(end, wide)
    index = lax.convert_element_type(lax.iota(np.int64, steps), wide)
    step = (end - start) / max(steps - 1, 1)
    half = steps // 2  # from both ends, so that both are exact
    values = jnp.where(index < half, start + step * index, end - step * (steps - 1 - index))
    if steps == 1:
        values = lax.full((1,), start, wide)
    return lax.convert_element_type(values if dtype.kind not in "iu" else jnp.trunc(values), dtype)


def _logspace(start, end, base, /, steps, dtype):
    exponents = _linspace(start, end, steps=steps, dtype=np.dtype(np.float64))
    return lax.convert_element_type(lax.convert_element_type(base, np.float64) ** exponents, dtype)


def _eye(n, m, dtype):
    rows = lax.broadcasted_iota(np.int64, (n, m), 0)
    return lax.convert_element_type(lax.eq(rows, lax.broadcasted_iota(np.int64, (n, m), 1)), dtype)


# ----------------------------------------------------------------------------------------------------------------
# filled


def _float_dtype(dtype) -> np.dtype:
    return dtypes.of(dtype).np if dtype is not None else dtypes.get_default_dtype().np


def _filled(value, size, dtype, options, requires_grad, asked) -> Tensor:
    shape = size_of(size, asked)
    static = (("shape", shape), ("dtype", _float_dtype(dtype)), ("value", value))
    return make(_constant, static, (), options, asked, requires_grad)


def zeros(*size, dtype=None, device=None, placement=None, sbp=None, requires_grad: bool = False) -> Tensor:
    """Return a tensor of zeros.

    Args:
        size: the shape, as numbers or one tuple.
        dtype: the dtype; the default dtype if None.
        device: where a local tensor lies.
        placement: where a global tensor lies; comes with ``sbp``.
        sbp: how a global tensor lies.
        requires_grad: whether ops on it are recorded.

    Example:
        >>> sbpjax.zeros(2, 3).shape
        sbpjax.Size([2, 3])
    """
    return _filled(0, size, dtype, (device, placement, sbp), requires_grad, "zeros(...)")


def ones(*size, dtype=None, device=None, placement=None, sbp=None, requires_grad: bool = False) -> Tensor:
    """Return a tensor of ones; arguments as `zeros`."""
    return _filled(1, size, dtype, (device, placement, sbp), requires_grad, "ones(...)")


def empty(*size, dtype=None, device=None, placement=None, sbp=None, requires_grad: bool = False, **_memory) -> Tensor:
    """Return a tensor whose content is not specified (zeros, in fact); arguments as `zeros`."""
    return _filled(0, size, dtype, (device, placement, sbp), requires_grad, "empty(...)")


def full(size, fill_value, *, dtype=None, device=None, placement=None, sbp=None, requires_grad: bool = False) -> Tensor:
    """Return a tensor of one value; without ``dtype`` the value's own kind decides it."""
    if isinstance(fill_value, Tensor):
        dtype = dtype or fill_value.dtype
        fill_value = fill_value.item()
    if not isinstance(fill_value, (bool, int, float, complex, np.generic)):
        rule = "the value is a number or a 0-d tensor"
        raise OpTypeError(message("full(size, value)", f"a {type(fill_value).__name__}", rule, "full((2, 3), 1.0)"))
    shape = size_of((size,) if not isinstance(size, (tuple, list)) else tuple(size), "full(...)")
    static = (("shape", shape), ("dtype", _dtype_of_number(fill_value, dtype)))
    return make(_full, static, (fill_value,), (device, placement, sbp), "full(...)", requires_grad)


def _dtype_of_number(value, dtype=None) -> np.dtype:
    if dtype is not None:
        return dtypes.of(dtype).np
    if isinstance(value, (bool, np.bool_)):
        return dtypes.bool_.np
    if isinstance(value, (int, np.integer)):
        return dtypes.int64.np
    if isinstance(value, (complex, np.complexfloating)):
        return dtypes.complex64.np
    return dtypes.get_default_dtype().np


# ----------------------------------------------------------------------------------------------------------------
# ranges


def arange(
    start, end=None, step=1, *, dtype=None, device=None, placement=None, sbp=None, requires_grad: bool = False
) -> Tensor:
    """Return ``start, start + step, …`` below ``end``; int64 if all are integers."""
    if end is None:
        start, end = 0, start
    start, end, step = (v.item() if isinstance(v, (Tensor, np.generic)) else v for v in (start, end, step))
    if step == 0 or (end - start) / step < 0:
        raise OpError(
            message(
                f"arange({start}, {end}, {step})",
                f"step {step}",
                "the step is not 0 and leads from start to end",
                "swap start and end, or change the step's sign",
            )
        )
    if dtype is None:
        whole = all(isinstance(v, (bool, int)) for v in (start, end, step))
        resolved = dtypes.int64.np if whole else dtypes.get_default_dtype().np
    else:
        resolved = dtypes.of(dtype).np
    if all(isinstance(v, int) for v in (start, end, step)):
        length = -((start - end) // step)
    else:
        length = math.ceil((end - start) / step)
    static = (("length", length), ("dtype", resolved))
    return make(_arange, static, (start, step), (device, placement, sbp), "arange(...)", requires_grad)


def _check_count(asked: str, name: str, value) -> None:
    if value < 0:
        raise OpError(message(asked, f"{name}={value}", f"number of {name} must be non-negative", f"{name}=100"))


def linspace(
    start, end, steps: int, *, dtype=None, device=None, placement=None, sbp=None, requires_grad: bool = False
) -> Tensor:
    """Return ``steps`` evenly spaced values from ``start`` to ``end``, both included."""
    _check_count("linspace(...)", "steps", steps)
    static = (("steps", int(steps)), ("dtype", _float_dtype(dtype)))
    return make(_linspace, static, (start, end), (device, placement, sbp), "linspace(...)", requires_grad)


def logspace(
    start, end, steps: int, base: float = 10.0, *, dtype=None, device=None, placement=None, sbp=None, requires_grad:
    bool = False
) -> Tensor:  # fmt: skip
    """Return ``base`` to the power of `linspace`."""
    _check_count("logspace(...)", "steps", steps)
    static = (("steps", int(steps)), ("dtype", _float_dtype(dtype)))
    return make(_logspace, static, (start, end, base), (device, placement, sbp), "logspace(...)", requires_grad)


def eye(
    n: int, m: int | None = None, *, dtype=None, device=None, placement=None, sbp=None, requires_grad: bool = False
) -> Tensor:
    """Return an ``n`` × ``m`` tensor with ones on the diagonal."""
    shape = size_of((n, n if m is None else m), "eye(...)")
    static = (("n", shape[0]), ("m", shape[1]), ("dtype", _float_dtype(dtype)))
    return make(_eye, static, (), (device, placement, sbp), "eye(...)", requires_grad)


# ------------------------------------------------------------------------------------------------------------- from
# data


def _host_array(data, dtype):
    """Return nested data as a NumPy array with torch's dtypes: Python floats are of the default dtype."""
    resolved = dtypes.np_of(dtype)
    if isinstance(data, (np.ndarray, np.generic)):
        return np.array(data, dtype=resolved)
    if isinstance(data, (list, tuple)) and _holds_tensors(data):
        data = _unwrap(data)
    try:
        array = np.array(data) if resolved is None or resolved.kind in "iub" else np.array(data, dtype=resolved)
    except (ValueError, TypeError) as error:
        raise (OpValueError if isinstance(error, ValueError) else OpTypeError)(
            message("tensor(data)", f"{type(data).__name__} {str(data)[:60]}", str(error), "pass evenly nested numbers")
        ) from None
    if array.dtype == object or array.dtype.kind in "USMm":
        raise OpTypeError(
            message(
                "tensor(data)",
                f"data of type {type(data).__name__} with {array.dtype} elements",
                "data is made of numbers",
                "pass numbers, evenly nested",
            )
        )
    if resolved is None and array.dtype.kind in "fc" and not _holds_numpy(data):
        wide = dtypes.get_default_dtype().np
        return array.astype(wide if array.dtype.kind == "f" else np.complex128 if wide.itemsize == 8 else np.complex64)
    return array if resolved is None else array.astype(resolved)


def _holds_numpy(data) -> bool:
    while isinstance(data, (list, tuple)) and data:
        data = data[0]
    return isinstance(data, (np.ndarray, np.generic)) and not isinstance(data, float)


def _holds_tensors(data) -> bool:
    return any(isinstance(x, Tensor) or (isinstance(x, (list, tuple)) and _holds_tensors(x)) for x in data)


def _unwrap(data):
    return [x.numpy() if isinstance(x, Tensor) else _unwrap(x) if isinstance(x, (list, tuple)) else x for x in data]


def tensor(data, *, dtype=None, device=None, placement=None, sbp=None, requires_grad: bool = False) -> Tensor:
    """Return a tensor with a copy of ``data``.

    Args:
        data: numbers, nested lists of them, a NumPy array, or a tensor.
        dtype: the dtype; by default the data's (Python floats: the default dtype, integers: int64).
        device: where a local tensor lies.
        placement: where a global tensor lies; comes with ``sbp``.
        sbp: how a global tensor lies; ``data`` is the logical value.
        requires_grad: whether ops on it are recorded.

    Raises:
        OpTypeError: the data is no evenly nested collection of numbers.
    """
    target, placement, sbp = where_to(device, placement, sbp, "tensor(...)")
    if isinstance(data, Tensor):
        out = data.detach().clone() if not without_data(target, placement) else data.detach().to(META)
        if dtype is not None:
            out = out.to(dtype)
        if placement is not None:
            out = out.to_global(placement, sbp)
        elif device is not None and not out.is_meta:
            out = out.to(device)
        out = dispatch.wrap_any(out._array, out._layout)._as_asked()
    elif isinstance(data, jax.Array):
        out = dispatch.wrap_any(data if dtype is None else data.astype(dtypes.of(dtype).np))
    else:
        array = _host_array(data, dtype)
        if without_data(target, placement):
            out = abstract.empty(array.shape, array.dtype, placement, sbp)
        elif placement is not None:
            out = dispatch.wrap_any(*eager.from_logical(array, placement, sbp))._as_asked()
        else:
            # `jnp.asarray` would lower a program that copies, one for each shape.
            free = target is None and not trace_state_clean()
            out = dispatch.wrap(jnp.asarray(array) if free else jax.device_put(array, target, may_alias=False))
    return out.requires_grad_() if requires_grad else out


def as_tensor(data, dtype=None, device=None) -> Tensor:
    """Return ``data`` as a tensor; a tensor that fits is returned itself."""
    if isinstance(data, Tensor):
        return data if dtype is None and device is None else data.to(*[v for v in (device, dtype) if v is not None])
    return tensor(data, dtype=dtype, device=device)


def from_numpy(array: np.ndarray) -> Tensor:
    """Return a local tensor with a NumPy array's content (a copy: JAX arrays share no memory with NumPy)."""
    if not isinstance(array, np.ndarray):
        raise OpTypeError(
            message("from_numpy(array)", f"a {type(array).__name__}", "array is a numpy.ndarray", "sbpjax.tensor(data)")
        )
    return tensor(array)


def from_jax(array) -> Tensor:
    """Return a tensor over a `jax.Array`: local if it lies on one device, else global in the layout of its sharding.

    Raises:
        SbpError: the array's sharding is of a kind that no sbp stands for.
    """
    if isinstance(array, Tracer):
        return dispatch.wrap_any(array)
    from sbpjax.sbp import interop

    return dispatch.wrap_any(*interop.from_jax(array))


def legacy(data: tuple, options: dict) -> Tensor:
    """Return what ``Tensor(*data)`` makes: an uninitialised tensor of a size, or one with that content."""
    where = {k: options.pop(k, None) for k in ("device", "placement", "sbp")}
    if options:
        raise OpTypeError(
            message(
                "Tensor(...)",
                f"unknown arguments {sorted(options)}",
                "it takes device, placement, sbp",
                "sbpjax.tensor(...)",
            )
        )
    if len(data) == 1 and isinstance(data[0], (list, tuple, np.ndarray)) and type(data[0]).__name__ != "Size":
        return tensor(data[0], dtype=dtypes.get_default_dtype(), **where)
    if len(data) == 1 and isinstance(data[0], Tensor):
        return tensor(data[0], **where)
    return empty(*data, **where)


# ------------------------------------------------------------------------------------------------- like another tensor


def place_like(x: Tensor, device, placement, sbp, random: bool = False):
    """Return ``(device, placement, sbp)`` for a new tensor that lies as ``x`` does unless told otherwise."""
    if device is not None:
        return device, placement, sbp
    layout = x._fresh()._layout
    if layout is None:
        if placement is None and sbp is None:
            return (x.device if x._plain or x.is_meta else None), None, None
        return None, placement, sbp
    placement = layout.placement if placement is None else placement
    if sbp is None:
        sbp = layout.sbp if layout.shape is not None else None
        if random and sbp is not None:
            from .convert import _no_partial

            sbp = _no_partial(sbp)
    return None, placement, sbp


def _like(x: Tensor, value, dtype, device, placement, sbp, requires_grad, asked) -> Tensor:
    if not isinstance(x, Tensor):
        raise OpTypeError(message(asked, f"a {type(x).__name__}", "the input is a tensor", "pass a tensor"))
    static = (("shape", tuple(x.shape)), ("dtype", dtypes.of(dtype or x.dtype).np), ("value", value))
    if not x._plain and isinstance(x._array, Tracer):
        out = dispatch.wrap_any(_constant(**dict(static)), x._layout)
        return out.requires_grad_() if requires_grad else out
    if not x._plain and x.is_meta and device is None:
        with abstract.abstract():
            return make(_constant, static, (), place_like(x, device, placement, sbp), asked, requires_grad)
    return make(_constant, static, (), place_like(x, device, placement, sbp), asked, requires_grad)


def zeros_like(
    x: Tensor, *, dtype=None, device=None, placement=None, sbp=None, requires_grad: bool = False, memory_format=None
) -> Tensor:
    """Return zeros of the shape, dtype and layout of ``x``, unless told otherwise."""
    return _like(x, 0, dtype, device, placement, sbp, requires_grad, "zeros_like(x)")


def ones_like(
    x: Tensor, *, dtype=None, device=None, placement=None, sbp=None, requires_grad: bool = False, memory_format=None
) -> Tensor:
    """Return ones of the shape, dtype and layout of ``x``, unless told otherwise."""
    return _like(x, 1, dtype, device, placement, sbp, requires_grad, "ones_like(x)")


def empty_like(
    x: Tensor, *, dtype=None, device=None, placement=None, sbp=None, requires_grad: bool = False, memory_format=None
) -> Tensor:
    """Return an unspecified tensor of the shape, dtype and layout of ``x``, unless told otherwise."""
    return _like(x, 0, dtype, device, placement, sbp, requires_grad, "empty_like(x)")


def full_like(
    x: Tensor, fill_value, *, dtype=None, device=None, placement=None, sbp=None, requires_grad: bool = False
) -> Tensor:
    """Return one value in the shape, dtype and layout of ``x``, unless told otherwise."""
    if isinstance(fill_value, Tensor):
        fill_value = fill_value.item()
    static = (("shape", tuple(x.shape)), ("dtype", dtypes.of(dtype or x.dtype).np))
    if not x._plain and isinstance(x._array, Tracer):
        return dispatch.wrap_any(_full(fill_value, **dict(static)), x._layout)
    if not x._plain and x.is_meta and device is None:
        with abstract.abstract():
            return make(_full, static, (fill_value,), place_like(x, device, placement, sbp), "full_like(x)")
    return make(_full, static, (fill_value,), place_like(x, device, placement, sbp), "full_like(x)", requires_grad)


def _traced_new(x: Tensor, size, value, dtype, requires_grad: bool) -> Tensor:
    """Return a constant of the program that ``x`` is traced in."""
    array = _constant(tuple(size), dtypes.of(dtype or x.dtype).np, value)
    out = dispatch.wrap_any(array, x._layout)
    return out.requires_grad_() if requires_grad else out


def _is_traced(x: Tensor, *where) -> bool:
    return not x._plain and isinstance(x._array, Tracer) and all(w is None for w in where)


def _new(maker):
    def new(
        self: Tensor, *size, dtype=None, device=None, placement=None, sbp=None, requires_grad: bool = False
    ) -> Tensor:
        if _is_traced(self, device, placement, sbp):
            value = 1 if maker.__name__ == "ones" else 0
            return _traced_new(self, size_of(size, f"new_{maker.__name__}(...)"), value, dtype, requires_grad)
        keep = self.is_meta and device is None
        device, placement, sbp = place_like(self, device, placement, sbp)
        if keep:
            with abstract.abstract():
                return maker(
                    *size, dtype=dtype or self.dtype, placement=placement, sbp=sbp, requires_grad=requires_grad
                )
        return maker(
            *size, dtype=dtype or self.dtype, device=device, placement=placement, sbp=sbp, requires_grad=requires_grad
        )

    new.__doc__ = (
        f"Return `{maker.__name__}` of a size, with the dtype and layout of this tensor unless told otherwise."
    )
    return new


def new_full(
    self: Tensor,
    size: Sequence[int],
    fill_value,
    *,
    dtype=None,
    device=None,
    placement=None,
    sbp=None,
    requires_grad=False,
) -> Tensor:
    """Return `full` of a size, with the dtype and layout of this tensor unless told otherwise."""
    if _is_traced(self, device, placement, sbp) and not isinstance(fill_value, Tensor):
        return _traced_new(self, size_of((size,), "new_full(...)"), fill_value, dtype, requires_grad)
    keep = self.is_meta and device is None
    device, placement, sbp = place_like(self, device, placement, sbp)
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


def new_tensor(self: Tensor, data, *, dtype=None, device=None, placement=None, sbp=None, requires_grad=False) -> Tensor:
    """Return `tensor` of data with this tensor's dtype unless told otherwise; on its device if that is local."""
    if self._layout is None:
        device, placement, sbp = place_like(self, device, placement, sbp)
    elif placement is None or sbp is None:
        raise MixedTensorError(
            message(
                "x.new_tensor(data)",
                f"a global tensor on {self.placement!r}",
                "data for a global tensor needs placement and sbp",
                "x.new_tensor(data, placement=x.placement, sbp=x.sbp)",
            )
        )
    return tensor(
        data, dtype=dtype or self.dtype, device=device, placement=placement, sbp=sbp, requires_grad=requires_grad
    )


def _attach() -> None:
    for maker in (zeros, ones, empty):
        setattr(Tensor, f"new_{maker.__name__}", _new(maker))
    attach(new_full=new_full)
    attach(new_tensor=new_tensor)


_attach()
publish(globals(), "zeros ones empty full arange linspace logspace eye")
publish(globals(), "full_like", out=False)
