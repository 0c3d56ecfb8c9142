"""`zero_grads`: sets gradients to zero, or drops them.

    g = w.grad
    optimizer.zero_grad()      # g is zero, and still w.grad
    loss.backward()            # and now the new gradient

A zero costs no memory and no program: all gradients of one shape and place share one array of zeros, and a backward
that finds that array puts its gradient there instead of adding to it.
"""

from __future__ import annotations

from collections.abc import Iterable

import jax.numpy as jnp
import numpy as np

from sbpjax._core import naming
from sbpjax._core.jax_private import ArrayImpl, trace_state_clean
from sbpjax._core.runtime.ambient_mesh import hide_mesh
from sbpjax._core.tensor.creation.host_constants import put_like
from sbpjax._core.tensor.handle.mode import mode
from sbpjax._core.tensor.handle.tensor import Tensor, wrap_any
from sbpjax._core.tensor.tape.row_grad import RowGrad


def zero_grads(tensors: Iterable[Tensor], set_to_none: bool | None) -> None:
    """Set the gradients of tensors to zero in place, or drop them.

    Args:
        tensors: leaves; those without a gradient stay without.
        set_to_none: drop the gradients; if None, in a program that imports the package as torch.
    """
    if set_to_none is None:
        set_to_none = naming.is_torch()
    made: dict[tuple, ArrayImpl] = {}
    for tensor in tensors:
        meta = tensor._meta
        if meta is None or meta.grad is None:
            continue
        if mode.touch is not None:
            mode.touch(tensor)
        # A gradient of rows names none after this, and is made anew by the next backward.
        if set_to_none or meta.grad.__class__ is RowGrad:
            meta.grad = meta.zeroed = None
            continue
        grad = meta.grad._fresh()
        array = grad._array
        # A zero made in a trace is part of its program.
        shared = array.__class__ is ArrayImpl and trace_state_clean()
        if not shared or grad._edge is not None:
            meta.grad = wrap_any(hide_mesh(jnp.zeros_like)(array), grad._layout)
        elif array is not meta.zeroed:
            zero = meta.zeroed
            if zero is None or (zero.shape, zero.dtype, zero.sharding) != (array.shape, array.dtype, array.sharding):
                key = (array.shape, array.dtype, array.sharding)
                zero = meta.zeroed = made.get(key)
                if zero is None:
                    zero = made[key] = meta.zeroed = _zeros_like(array)
            grad._set(zero, grad._layout)


@hide_mesh
def _zeros_like(array: ArrayImpl) -> ArrayImpl:
    sharding = array.sharding
    if not sharding.is_fully_addressable or any(d.platform != "cpu" for d in sharding.device_set):
        return jnp.zeros(array.shape, array.dtype, device=sharding)
    # A program that fills is compiled per shape, 40 ms of the first step for each.
    return put_like(np.zeros(array.shape, array.dtype), array)
