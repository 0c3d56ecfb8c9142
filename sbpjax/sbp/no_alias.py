"""Arrays that share no memory with another: what a conversion hands on is a tensor of its own.

An optimizer's step takes the memory of the parameters that it writes (donation), unless somebody else holds their
arrays, which the reference count tells. It does not tell of another array in the same memory, and JAX makes such ones:
`jax.device_put` of an array to a sharding that has it whole on its own device keeps it there, whatever ``may_alias``
says (jax 0.10), and a shard of an array is an array. After a step one of the two would be deleted, or the step would
take one memory twice, which ends the process.
"""

from __future__ import annotations

import jax
from jax._src.array import ArrayImpl
from jax.sharding import Sharding


def apart(array, sharding: Sharding | None = None):
    """Return a copy of an array; anything but a concrete array as it is.

    Args:
        array: of any devices.
        sharding: where it goes; without a block that could stay where it is there is no copy.
    """
    if array.__class__ is not ArrayImpl or not array.is_fully_addressable:
        return array
    if sharding is not None and not _may_stay(array, sharding):
        return array
    devices = array.devices()
    if len(devices) == 1:
        return jax.device_put(array, next(iter(devices)), may_alias=False)
    return jax.numpy.copy(array)


def _may_stay(array: jax.Array, sharding: Sharding) -> bool:
    """Return whether a device has a block that it has there, too, as far as shapes tell."""
    if not array.devices() & sharding.device_set:
        return False
    return array.sharding.shard_shape(array.shape) == sharding.shard_shape(array.shape)
