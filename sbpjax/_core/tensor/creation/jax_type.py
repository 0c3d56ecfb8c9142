"""Tensors as arguments of JAX's functions: a tensor stands for the array `x.jax()`, as a NumPy array does for its own.

    jnp.sum(x), jax.jit(f)(x), jax.grad(f)(x), jax.vmap(f)(x), jax.lax.scan(f, x, …), jax.device_put(x, …)

``f`` gets a tracer, and the results are arrays, which `from_jax` makes tensors; a value that ``f`` returns unchanged
may be the tensor itself. A tensor is a leaf of JAX's trees, not a node with an array in it: ``jax.tree.map`` hands
tensors to its function, and inside ``f`` all of JAX works, `lax` and ``isinstance(a, jax.Array)`` too. JAX would cut
the tape without a word, so a tensor that requires grad is refused while gradients are recorded.
"""

from __future__ import annotations

import jax
from jax.core import ShapedArray, Tracer
from jax.sharding import Sharding

from sbpjax._core.compiler import interop
from sbpjax._core.jax_private import register_array_type, update_aval_with_sharding
from sbpjax.errors import AutogradError
from sbpjax.sbp.abstract import Abstract, no_data

from ..calls.op_errors import check_leaked, leaked_error
from ..dispatch.traced import logical_value
from ..handle.mode import mode
from ..handle.tensor import Tensor
from .convert import jax_array


def array_of(x: Tensor) -> jax.Array:
    """Return the array that a tensor stands for: a tracer of a traced tensor.

    Raises:
        AutogradError: the tensor requires grad, and gradients are recorded.
        AbstractError: it has no data.
        SbpError: no array has its layout.
    """
    _check_tape(x)
    x._fresh()
    if isinstance(x._array, Tracer) or mode.capture is not None:
        return logical_value(x)
    if x._array.__class__ is Abstract:
        raise no_data("a function of JAX on a tensor", f"{x.dtype.name}{list(x.shape)}")
    return jax_array(x)


def aval_of(x: Tensor) -> ShapedArray:
    """Return the JAX type of the array that a tensor stands for, without making it."""
    _check_tape(x)
    x._fresh()
    array, layout = x._array, x._layout
    check_leaked(x)
    if layout is None or layout.shape is None:
        return jax.typeof(array) if isinstance(array, (jax.Array, Tracer)) else array.aval
    known = layout.__dict__.get("jax_aval")
    if known is None:
        aval = ShapedArray(layout.shape, layout.dtype)
        known = layout.__dict__["jax_aval"] = update_aval_with_sharding(aval, interop.sharding_of(layout))
    return known


def sharding_of(self: Tensor) -> Sharding:
    """The `jax.sharding.Sharding` of ``x.jax()``: of a global tensor its layout on the mesh of its placement.

    Inside a function of JAX it is the sharding of the type, which shows Explicit axes only.

    Raises:
        SbpError: no array has the layout.

    Example:
        >>> p = flow.placement(jax.make_mesh((2, 4), ("data", "model")))
        >>> flow.ones(8, 8, placement=p, sbp={"data": flow.sbp.split(0)}).sharding.spec
        PartitionSpec('data',)
    """
    self._fresh()
    layout = self._layout
    if isinstance(self._array, Tracer):
        return jax.typeof(self._array).sharding
    return self._array.sharding if layout is None or layout.shape is None else interop.sharding_of(layout)


def is_committed(self: Tensor) -> bool:
    """Return whether JAX must run on the tensor's devices, as it reads it from arrays."""
    return self._layout is not None or getattr(self._fresh()._array, "_committed", True)


def _check_tape(x: Tensor) -> None:
    if mode.grad and x._edge is not None:
        raise AutogradError(
            "a function of JAX on a tensor",
            f"{x.dtype.name}{list(x.shape)} that requires grad",
            "JAX's functions are not on the tape, and backward() would give no gradient for them",
            "wrap_jax(f)(x) puts f on the tape; x.detach(), or no_grad(), leaves the gradient to JAX",
        )


def _check_result(x: Tensor) -> None:
    """Raise for a tensor of the trace that a function under `jax.vmap` returned: its tracer ends with the trace."""
    if isinstance(x._fresh()._array, Tracer):
        raise leaked_error(x)


register_array_type(Tensor, aval_of, array_of, _check_result)
