"""Lazy constants: tensors of one value that are filled at their first read.

The optimizer state of a model of 256 equal layers is thousands of tensors of zeros. A graph that keeps equal layers in
stacks never reads them one by one: it fills the stacks (`constant_of`).

    moments = [lazy_full_like(weight, 0.0) for weight in weights]
    constant_of(moments)          # 0.0: nothing is filled yet
    moments[0].numpy()            # fills one
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from sbpjax._core.compiler import conversions
from sbpjax._core.jax_private import ArrayImpl, trace_state_clean
from sbpjax._core.runtime.ambient_mesh import outside_program
from sbpjax.sbp.layout import Layout

from ..creation import host_constants
from ..handle.lazy_payload import LazyRoot
from ..handle.mode import mode
from ..handle.tensor import Tensor, wrap_any
from .exchange import commit, make_assigner
from .storage import defer


class LazyConstant(LazyRoot):
    """One value in the shape and layout of another tensor."""

    __slots__ = ("layout", "value")

    def __init__(self, value: float, like: Any, layout: Layout | None) -> None:
        super().__init__(like)
        self.value, self.layout = value, layout

    def materialize(self) -> Any:
        """Fill it."""
        with ExitStack() as stack:
            if not trace_state_clean():  # the reader may be tracing
                stack.enter_context(outside_program())
            layout = self.layout
            if layout is None:
                return host_constants.put_like(np.full(self.shape, self.value, self.dtype), self)
            values = np.full(layout.shape, self.value, layout.dtype)
            return conversions.from_logical(values, layout.placement, layout.sbp)[0]


def lazy_full_like(x: Tensor, value: float) -> Tensor | None:
    """Return a tensor of one value on the CPU, off the tape, that is filled at its first read.

    Args:
        x: the tensor that has its shape, dtype and layout.
        value: the value.

    Returns:
        The tensor; None where it cannot wait: on other devices, in a trace, without data, as partial sums.
    """
    payload, layout = x._array, x._layout
    if not isinstance(payload, (ArrayImpl, LazyRoot)) or mode.touch is not None or mode.capture is not None:
        return None
    if layout is not None and layout.partial_axes:
        return None
    device = next(iter(payload.sharding.device_set))
    if not host_constants.on_cpu(device, None if layout is None else layout.placement):
        return None
    out = wrap_any(payload, layout)
    commit(make_assigner(defer(out, LazyConstant(value, payload, layout), out._ver)))
    return out


def constant_of(tensors: Sequence[Tensor]) -> float | None:
    """Return the one value of tensors that are not filled yet; None if one of them is anything else."""
    constants = [x._array for x in tensors if x._array.__class__ is LazyConstant]
    values = {constant.value for constant in constants}
    return values.pop() if len(constants) == len(tensors) and len(values) == 1 else None
