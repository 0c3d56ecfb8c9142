"""Scalar inputs of ops as cached 0-d arrays, and hashable static attributes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sbpjax._core.jax_private import xla_client
from sbpjax._core.runtime.ambient_mesh import evaluate, hide_mesh
from sbpjax.errors import OpOverflowError, OpTypeError

from ..handle import dtype as dtypes
from ..handle.plain_values import number_of
from ..handle.tensor import Tensor, wrap_any


def wrap_input(x):
    """Return an input of an op as a tensor, if it is an array."""
    if isinstance(x, np.ndarray):
        x = jnp.asarray(x)
    return wrap_any(x) if isinstance(x, jax.Array) else x


_scalars: dict[type, dict] = {bool: {}, int: {}, float: {}, complex: {}}
_MAX_SCALARS = 4096


def scalar_array(value):
    """Return a number as a weakly typed 0-d array; the common ones are kept on the device."""
    cls = value.__class__
    table = _scalars.get(cls)
    if table is None:
        if isinstance(value, np.generic):
            return scalar_array(value.item())
        for base in (bool, int, float, complex):  # also their subclasses
            if isinstance(value, base):
                number: Any = value
                return scalar_array(base(number))
        other = number_of(value)
        if other is not None:
            return scalar_array(other)
        raise OpTypeError(
            "an op on tensors and numbers",
            f"a {cls.__name__}",
            "inputs of an op are tensors and numbers",
            "sbpjax.tensor(value) makes a tensor of lists and arrays",
        )
    # A table per type: 1, 1.0 and True are equal as keys, and arrays of three dtypes.
    found = table.get(value)
    if found is None:
        # An array also within a trace, since it outlives that.
        try:
            found = _asarray(value)
        except OverflowError:
            rule = "a number beside a tensor is a 64-bit integer, or a float"
            raise OpOverflowError(
                "an op on a tensor and a number", f"{value}", rule, f"float({str(value)[:40]})"
            ) from None
        if len(table) >= _MAX_SCALARS:
            table.clear()
        if value != 0 or str(value) == str(cls(0)):  # -0.0 == 0.0 must not share an entry
            table[value] = found
    elif value == 0 and str(value) != str(cls(0)):
        found = _asarray(value)
    return found


@evaluate
@hide_mesh
def _asarray(value: Any) -> jax.Array:
    """Return `jax.numpy.asarray` of a number, which compiles a program for each type."""
    device = jax.config.jax_default_device or jax.local_devices()[0]
    if not isinstance(device, jax.Device):
        return jax.device_put(value)
    aval = jax.typeof(value)
    sharding = jax.sharding.SingleDeviceSharding(device)
    return xla_client.batched_device_put(aval, sharding, [np.asarray(value, aval.dtype)], [device], False)


_HASHABLE = frozenset((int, float, bool, str, type(None)))


def hashable(value):
    """Return a static attribute as a hashable value: lists become tuples, 0-d tensors numbers, dtypes NumPy dtypes."""
    # By far the most common, and not worth the chain of `isinstance` below.
    if value.__class__ in _HASHABLE:
        return value
    if isinstance(value, (list, tuple)):
        return tuple([hashable(v) for v in value])
    if isinstance(value, Tensor):
        return value.item()
    if isinstance(value, dtypes.dtype):
        return value.np
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return tuple(hashable(v) for v in value.tolist()) if value.ndim else value.item()
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return tuple([hashable(v) for v in value])
    number = number_of(value)
    return value if number is None else number
