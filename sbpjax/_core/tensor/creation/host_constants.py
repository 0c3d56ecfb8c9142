"""Host constants: new constants and random numbers made without compiling a program per shape.

A program that makes a tensor is compiled per shape: 10 ms of CPU time for a fill, 0.2 to 2 s for random numbers, and a
model has tens of shapes of parameters. On CPU devices constants are therefore filled by NumPy, and random numbers drawn
in blocks, joined and cut on the host: bit for bit what the program of the shape gives.

    normal numbers     in blocks of 16,384; after the first four million, of long draws in blocks of 131,072
    uniform ones       the first four million by NumPy, with no program; later ones in blocks, too

A value of one kind that is made again and again gets its program after `_TIMES`: a loop makes its noise in one call.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sbpjax._core.compiler import conversions
from sbpjax._core.compiler.eager.evaluator.random_bits import bits_of
from sbpjax._core.jax_private import trace_state_clean
from sbpjax._core.ops.promote import compute_dtype
from sbpjax._core.ops.randoms import blocks as random_blocks
from sbpjax._core.ops.randoms import random
from sbpjax._core.runtime.ambient_mesh import hide_mesh
from sbpjax._core.runtime.lru_cache import LRUCache
from sbpjax.errors import SbpError
from sbpjax.sbp import algebra

from ..dispatch.op import call_cached, op_of
from ..dispatch.scalars import scalar_array
from ..handle.tensor import Tensor, wrap, wrap_any

# A batch norm makes four values of one kind, and ResNet-152 has 37 of the same width.
_TIMES = 256
# On devices other than CPUs, to which the values filled by NumPy must still be sent.
_FILLED_BYTES = 1 << 16
_ON_CPU_BYTES = 1 << 31
_SMALL, _LARGE = 1 << 14, 1 << 17
_MOST_SMALL = 6  # a small block costs 0.2 ms, a large one 1.0 to 1.7
# Numbers of one kind. Each program takes 100 ms to make, in which NumPy draws 5 million, and small blocks 8 million.
_FEW = 1 << 22

_made = LRUCache(4096)  # how often each kind of value was made


def fill_on_host(
    shape: tuple[int, ...], dtype: np.dtype, value: Any, device=None, placement=None, sbp=None
) -> Tensor | None:
    """Return a constant filled on the host; None where a program has to make it.

    ``device``: the device that a local tensor is bound to; None leaves it on the default device.
    """
    if _is_frequent(kind := (shape, dtype, device, placement)):
        return None
    # Numbers that NumPy and XLA certainly round and cast alike.
    plain = type(value) in (bool, int, float) and (value in (0, 1) or (dtype.kind == "f" and abs(value) < 1e4))
    most = _ON_CPU_BYTES if on_cpu(device, placement) else _FILLED_BYTES
    if not plain or math.prod(shape) * dtype.itemsize > most or not trace_state_clean():
        return None
    if not _has_no_partial_sum(len(shape), placement, sbp):
        return None
    _count(kind)
    return _put(np.full(shape, value, dtype), device, placement, sbp)


# Each number depends on the key and its own index alone, and none of them on an array.
_BY_ELEMENT = frozenset(
    (random.rand, random.uniform, random.randn, random.normal, random.randint, random.exponential, random.cauchy,
     random.trunc_normal)
)  # fmt: skip


def draw(
    fn, static: tuple, inputs: list, device=None, placement=None, sbp=None, then=None
) -> Callable[[], Tensor] | None:
    """Return a function that draws random numbers in blocks; None where a program of their shape has to draw them.

    ``then``: a function of a block, by element, and arrays of numbers that it takes besides; a program of its own.
    """
    if fn not in _BY_ELEMENT or _is_frequent(kind := (fn, static, device, placement)):
        return None
    if not trace_state_clean() or not on_cpu(device, placement):
        return None
    config: Any = jax.config  # its flags are made at run time
    key = inputs[0]
    # A default device of the user's may not be a CPU; of JAX's other generators blocks are not known.
    if config.jax_default_device is not None or not config.jax_threefry_partitionable:
        return None
    if jax.random.key_impl(key) != "threefry2x32" or jax.default_backend() != "cpu":
        return None
    options = dict(static)
    shape = options.pop("shape")
    size = math.prod(shape)
    if not size or size * np.dtype(options.get("dtype") or np.float64).itemsize > _ON_CPU_BYTES:
        return None
    if not _has_no_partial_sum(len(shape), placement, sbp):
        return None
    _count(kind)
    return lambda: _put(_draw_numbers(fn, options, inputs, size, then).reshape(shape), device, placement, sbp)


@hide_mesh
def _draw_numbers(fn, options: dict, inputs: list, size: int, then=None) -> np.ndarray:
    """Return the first numbers of a draw, a flat array."""
    bounds = options.get("low", 0.0), options.get("high", 1.0)
    if fn is random.rand or (fn is random.uniform and bounds[0] <= bounds[1] and math.isfinite(bounds[1])):
        dtype = options["dtype"]
        if jnp.issubdtype(dtype, jnp.floating):
            fn, options = random_blocks.uniform_between, {"dtype": dtype}
            inputs = [inputs[0], *random_blocks.bounds_of(*bounds, dtype)]
    words = np.asarray(jax.random.key_data(inputs[0]))
    _count(fn, size)
    few = (_made.get(fn) or 0) <= _FEW
    uniform = None
    if few and fn is random_blocks.uniform_between and compute_dtype(options["dtype"]) == np.float32:
        uniform = _uniform_numbers(words, size, *inputs[1:])
        if then is None:
            return uniform
    numbers = [scalar_array(x) if isinstance(x, (bool, int, float, complex)) else jax.device_put(x) for x in inputs[1:]]
    found, start = None, 0
    while start < size:
        block = _SMALL if few or size - start <= _MOST_SMALL * _SMALL else _LARGE
        if uniform is None:
            op = op_of(fn, (("shape", (block,)), *options.items()))
            part = call_cached(op, [random_blocks.block_key(words, start), *numbers])
        else:
            part = jax.device_put(np.resize(uniform[start : start + block], block))
        part = np.asarray(part if then is None else call_cached(op_of(then[0]), [part, *then[1]]))[: size - start]
        if len(part) == size:
            return part
        if found is None:
            found = np.empty(size, part.dtype)
        found[start : start + len(part)] = part
        start += block
    assert found is not None
    return found


def _uniform_numbers(words: np.ndarray, size: int, scale, low, top, under) -> np.ndarray:
    """Return `random_blocks.uniform_between` for floats of at most 32 bits, by NumPy."""
    bits = bits_of(words, size)
    bits >>= np.uint32(9)
    bits |= np.uint32(0x3F800000)
    # XLA rounds the product and its sum once, a fused operation of the processor; in float64 both are exact.
    with np.errstate(all="ignore"):
        x = (bits.view(np.float32) - 1).astype(np.float64)
        x *= scale
        x += low
        out = x.astype(np.float32).astype(top.dtype)
        out[~(out < top)] = under
    return out


def bound_to(array) -> Any:
    """Return the device of an array; None of one on the default device that follows the other inputs of an op."""
    if array.committed or array.device != (jax.config.jax_default_device or _first_device()):
        return array.device
    return None


@hide_mesh
def put_like(values: np.ndarray, array: Any) -> jax.Array:
    """Return values as an array on the devices of another one, bound to them only if that one is.

    JAX compiles anew when an input is bound to its device in one call and not in another, and results of a program with
    one bound input are all bound.
    """
    # Not `jax.numpy.array`: it compiles a program that copies, for every shape. Aliased, donated memory is NumPy's.
    return jax.device_put(values, array.sharding if array.committed else None, may_alias=False)


@functools.cache
def _first_device() -> Any:
    return jax.local_devices()[0]


def on_cpu(device, placement) -> bool:
    """Return whether a device (None: the default one), or a placement, is of CPUs of this process."""
    if placement is not None:
        return placement.type == "cpu" and placement.is_present and not placement.spans_processes
    return (jax.default_backend() if device is None else device.platform) == "cpu"


def _is_frequent(kind: tuple) -> bool:
    """Return whether values of a kind were made so often that a program of their own pays."""
    return (_made.find(kind) or 0) >= _TIMES


def _count(kind: Any, times: int = 1) -> None:
    _made.keep(kind, (_made.get(kind) or 0) + times)


def _has_no_partial_sum(ndim: int, placement, sbp) -> bool:
    """Return whether ranks hold parts or copies of a tensor, and no summands of it."""
    if placement is None:
        return True
    try:
        codes = algebra.parse(sbp, placement, ndim)
    except SbpError:  # planning raises the error
        return False
    # Which rank holds the value of a partial sum is the planner's choice, as for larger tensors.
    return algebra.P not in codes


@hide_mesh
def _put(values: np.ndarray, device, placement, sbp) -> Tensor:
    if placement is None:
        # Aliased (JAX's default on CPU), donated memory would be NumPy's.
        return wrap(jax.device_put(values, device, may_alias=False))
    return wrap_any(*conversions.from_logical(values, placement, sbp))._mark_requested_sum()
