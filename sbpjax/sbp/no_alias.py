"""Aliasing protection: copies of arrays that would share memory with the source of a conversion.

An optimizer's step takes the memory of the parameters that it writes (donation), unless other code holds their arrays,
which the reference count shows. It does not show another array in the same memory, and JAX makes such ones:
`jax.device_put` of an array to a sharding that has it whole on its own device keeps it there, regardless of
``may_alias`` (jax 0.10), and a shard of an array is an array. After a step one of the two would be deleted, or the step
would take one memory twice, which ends the process.
"""

from __future__ import annotations

import jax
from jax.sharding import Sharding

from sbpjax._core.jax_private import ArrayImpl
from sbpjax._core.runtime.ambient_mesh import hide_mesh


@hide_mesh
def copy_without_alias(array, sharding: Sharding | None = None):
    """Return a copy of an array; anything but a concrete array as it is.

    Args:
        array: of any devices.
        sharding: the target; if no block could stay in place there is no copy.
    """
    if array.__class__ is not ArrayImpl or not array.is_fully_addressable:
        return array
    if sharding is not None and not _may_share_block(array, sharding):
        return array
    devices = array.devices()
    if len(devices) == 1:
        return jax.device_put(array, next(iter(devices)), may_alias=False)
    return jax.numpy.copy(array)


def _may_share_block(array: jax.Array, sharding: Sharding) -> bool:
    """Return whether a device, judged by shapes, has the same block in both arrays."""
    if not array.devices() & sharding.device_set:
        return False
    return array.sharding.shard_shape(array.shape) == sharding.shard_shape(array.shape)
