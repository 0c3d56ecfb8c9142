"""Tensor creation from data: numbers, nested lists, NumPy and JAX arrays, other tensors.

Worked case: ``tensor([1, 2.5])`` is of the default dtype, as Python floats are, ``tensor([1, 2])`` of int64, and
``tensor(np.ones(2))`` of the array's float64. With ``placement=`` and ``sbp=`` the data is the logical value.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from sbpjax._core.compiler import conversions, interop
from sbpjax._core.jax_private import trace_state_clean
from sbpjax._core.ops.promote import promote_types
from sbpjax._core.runtime.ambient_mesh import hide_mesh
from sbpjax.errors import OpTypeError, OpValueError

from ..dispatch import abstract
from ..handle import dtype as dtypes
from ..handle.device import META
from ..handle.tensor import Tensor, wrap_any
from .convert import pin
from .creation import empty, is_created_abstract, resolve_destination, zeros
from .number_range import check_fits

_PYTHON = {bool, int, float, complex}


def _host_array(data, dtype):
    """Return nested data as a NumPy array with torch's dtypes: Python floats are of the default dtype."""
    resolved = dtypes.as_np_dtype(dtype)
    if isinstance(data, (np.ndarray, np.generic)):
        return np.array(data, dtype=resolved)
    if isinstance(data, (list, tuple)) and _holds_tensors(data):
        data = _unwrap(data)
    try:
        # Integers are converted below: NumPy 2 refuses -1 as uint8 here, and PyTorch wraps it round.
        array = np.array(data) if resolved is None or resolved.kind in "iub" else np.array(data, dtype=resolved)
    except (ValueError, TypeError) as error:
        text = isinstance(data, str) or not isinstance(error, ValueError)
        raise (OpTypeError if text else OpValueError)(
            "tensor(data)", f"{type(data).__name__} {str(data)[:60]}", str(error), "pass evenly nested numbers"
        ) from None
    if array.dtype == object and _kinds(data) <= {int, bool}:
        raise _overflow_error(data, "int64")
    if array.dtype == object or array.dtype.kind in "USMm":
        raise OpTypeError(
            "tensor(data)",
            f"data of type {type(data).__name__} with {array.dtype} elements",
            "data is made of numbers",
            "pass numbers, evenly nested",
        )
    if resolved is None:
        if array.dtype == np.uint64 and not {np.uint64} & {getattr(t, "type", None) for t in _kinds(data)}:
            raise _overflow_error(data, "int64")
        resolved = _common_dtype(data, array.dtype)
    elif resolved.kind in "iu" and array.size and array.dtype != resolved:
        _check_integers(data, array, resolved)
    return array.astype(resolved, copy=False)


def _check_integers(data, array: np.ndarray, dtype: np.dtype) -> None:
    """Raise unless the numbers of nested data can become integers of a dtype; NumPy's own wrap round, as in PyTorch."""
    if array.dtype.kind == "c":
        rule = "'complex' object cannot be interpreted as an integer"
        raise OpTypeError("tensor(data)", f"complex numbers for {dtype.name}", rule, "leave out dtype, or take x.real")
    if any(isinstance(kind, np.dtype) for kind in _kinds(data)):
        return
    for value in (array.min().item(), array.max().item()):
        check_fits("tensor(data)", value, dtype)


def _overflow_error(data, name: str) -> OpValueError:
    rule = f"Overflow when unpacking long long: an integer is within the range of {name}"
    return OpValueError("tensor(data)", f"{type(data).__name__} {str(data)[:60]}", rule, "use floats: float(value)")


def _common_dtype(data, found: np.dtype) -> np.dtype:
    """Return the dtype of nested data: NumPy's numbers and arrays in it have their own, Python's are promoted to it."""
    own = {t for t in _kinds(data) if isinstance(t, np.dtype)}
    if not own and found.kind not in "fc":
        return found
    real = dtypes.get_default_dtype().np
    python = {bool: np.dtype(bool), int: np.dtype(np.int64), float: real, complex: _complex_of(real)}
    if not own:
        return python[float if found.kind == "f" else complex]
    return functools.reduce(promote_types, sorted(own | {python.get(t, found) for t in _kinds(data) - own}, key=str))


def _complex_of(real: np.dtype) -> np.dtype:
    return np.dtype(np.complex128 if real.itemsize == 8 else np.complex64)


def _kinds(data) -> set:
    """Return the types of the Python numbers in nested data and the dtypes of NumPy's."""
    if not isinstance(data, (list, tuple)):
        return {data.dtype} if isinstance(data, (np.ndarray, np.generic)) else {type(data)}
    # The innermost list in one pass in C: a list of a million floats is mostly this.
    kinds = set(map(type, data))
    if not kinds - _PYTHON:
        return kinds
    return set().union(*map(_kinds, data))


def _holds_tensors(data) -> bool:
    return any(isinstance(x, Tensor) or (isinstance(x, (list, tuple)) and _holds_tensors(x)) for x in data)


def _unwrap(data):
    return [x.numpy() if isinstance(x, Tensor) else _unwrap(x) if isinstance(x, (list, tuple)) else x for x in data]


@hide_mesh
def tensor(data, *, dtype=None, device=None, placement=None, sbp=None, requires_grad: bool = False) -> Tensor:
    """Return a tensor with a copy of ``data``.

    Args:
        data: numbers, nested lists of them, a NumPy array, or a tensor.
        dtype: the dtype; by default the data's (Python floats: the default dtype, integers: int64).
        device: the device of a local tensor.
        placement: the placement of a global tensor; comes with ``sbp``.
        sbp: the nd-sbp of a global tensor; ``data`` is the logical value.
        requires_grad: whether ops on it are recorded.

    Raises:
        OpTypeError: the data is no evenly nested collection of numbers.

    Example:
        >>> p = flow.placement("cpu", [0, 1])
        >>> flow.tensor([[1, 2], [3, 4]])
        tensor([[1, 2],
                [3, 4]])
        >>> flow.tensor([1.0, 2.0], placement=p, sbp=flow.sbp.split(0)).sbp
        (sbpjax.sbp.split(dim=0),)
    """
    target, placement, sbp = resolve_destination(device, placement, sbp, "tensor(...)")
    if isinstance(data, Tensor):
        out = data.detach().clone() if not is_created_abstract(target, placement) else data.detach().to(META)
        if dtype is not None:
            out = out.to(dtype)
        if placement is not None:
            out = out.to_global(placement, sbp)
        elif device is not None and not out.is_meta:
            out = out.to(device)
        out = wrap_any(out._array, out._layout)._mark_requested_sum()
    elif isinstance(data, jax.Array):
        out = wrap_any(data if dtype is None else data.astype(dtypes.as_dtype(dtype).np))
    else:
        array = _host_array(data, dtype)
        if is_created_abstract(target, placement):
            out = abstract.empty(array.shape, array.dtype, placement, sbp)
        elif placement is not None and not trace_state_clean():
            out = pin(wrap_any(jnp.asarray(array)), placement, sbp)  # laid out by the program
        elif placement is not None:
            out = wrap_any(*conversions.from_logical(array, placement, sbp))._mark_requested_sum()
        else:
            # `jnp.asarray` would lower a program that copies, one for each shape.
            free = target is None and not trace_state_clean()
            out = wrap_any(jnp.asarray(array) if free else jax.device_put(array, target, may_alias=False))
    return out.requires_grad_() if requires_grad else out


@hide_mesh
def as_tensor(data, dtype=None, device=None) -> Tensor:
    """Return ``data`` as a tensor; a tensor that fits is returned itself.

    Args:
        data: numbers, nested lists of them, a NumPy array, or a tensor.
        dtype: the dtype; the data's if None.
        device: the device.

    Returns:
        A local tensor; a global one stays as it is, with its sbp.

    Example:
        >>> flow.as_tensor([1.0, 2.0])
        tensor([1., 2.])
    """
    if isinstance(data, Tensor):
        return data if dtype is None and device is None else data.to(*[v for v in (device, dtype) if v is not None])
    return tensor(data, dtype=dtype, device=device)


@hide_mesh
def from_numpy(array: np.ndarray) -> Tensor:
    """Return a local tensor with a NumPy array's content: a copy, so later writes to the array are not seen.

    A `jax.Array` never changes; programs that run later may still read it. See `docs/reference/compatibility.md`.

    Args:
        array: any numbers or bools.

    Returns:
        A local tensor of the array's shape and dtype; `to_global` gives it an sbp.

    Raises:
        OpTypeError: ``array`` is no NumPy array.

    Example:
        >>> import numpy
        >>> flow.from_numpy(numpy.arange(3))
        tensor([0, 1, 2])
    """
    if not isinstance(array, np.ndarray):
        raise OpTypeError(
            "from_numpy(array)", f"a {type(array).__name__}", "array is a numpy.ndarray", "sbpjax.tensor(data)"
        )
    return tensor(array)


@hide_mesh
def from_jax(array) -> Tensor:
    """Return a tensor over a `jax.Array`: local if it is on one device, else global in the layout of its sharding.

    Raises:
        OpTypeError: it is no array of numbers.
        SbpError: no sbp corresponds to the array's sharding.
    """
    if not isinstance(array, jax.Array) or jax.dtypes.issubdtype(array.dtype, jax.dtypes.extended):
        raise OpTypeError(
            "from_jax(array)",
            str(jax.typeof(array)) if isinstance(array, jax.Array) else f"a {type(array).__name__}",
            "array is a jax.Array of numbers",
            "sbpjax.tensor(data) for other data; jax.random.key_data(key) for random keys",
        )
    if isinstance(array, Tracer):
        return wrap_any(array)
    return wrap_any(*interop.from_jax(array))


def legacy(data: tuple, options: dict) -> Tensor:
    """Return ``Tensor(*data)``: an uninitialised tensor of a size, or one with that content."""
    where = {k: options.pop(k, None) for k in ("device", "placement", "sbp")}
    if options:
        raise OpTypeError(
            "Tensor(...)",
            f"unknown arguments {sorted(options)}",
            "it takes device, placement, sbp",
            "sbpjax.tensor(...)",
        )
    if len(data) == 1 and isinstance(data[0], (list, tuple, np.ndarray)) and type(data[0]).__name__ != "Size":
        return tensor(data[0], dtype=dtypes.get_default_dtype(), **where)
    if len(data) == 1 and isinstance(data[0], Tensor):
        return tensor(data[0], **where)
    return empty(*(data or (0,)), **where)


# Legacy tensor types of PyTorch.
class _Typed(type):
    """The type of `FloatTensor` and its like: called, they make tensors; an instance is any tensor of their dtype."""

    _dtype: dtypes.dtype

    def __call__(cls, *data, **where) -> Tensor:
        if len(data) == 1 and not isinstance(data[0], int):
            return tensor(data[0], dtype=cls._dtype, **where)
        return zeros(*data, dtype=cls._dtype, **where)

    def __instancecheck__(cls, instance) -> bool:
        return isinstance(instance, Tensor) and instance.dtype == cls._dtype


def _make_type(name: str, dtype) -> _Typed:
    doc = f"A {dtype!r} tensor with the given content, or of the given size."
    return _Typed(name, (), {"_dtype": dtype, "__doc__": doc, "__module__": "sbpjax"})


FloatTensor, DoubleTensor, HalfTensor = (
    _make_type(n, d)
    for n, d in (("FloatTensor", dtypes.float32), ("DoubleTensor", dtypes.float64), ("HalfTensor", dtypes.float16))
)
LongTensor, IntTensor, BoolTensor = (
    _make_type(n, d)
    for n, d in (("LongTensor", dtypes.int64), ("IntTensor", dtypes.int32), ("BoolTensor", dtypes.bool_))
)
BFloat16Tensor, ShortTensor = _make_type("BFloat16Tensor", dtypes.bfloat16), _make_type("ShortTensor", dtypes.int16)
ByteTensor, CharTensor = (_make_type(n, d) for n, d in (("ByteTensor", dtypes.uint8), ("CharTensor", dtypes.int8)))
