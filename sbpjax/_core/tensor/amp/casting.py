"""`Casting`: casts the inputs of ops while autocasting is on, and caches the casts of weights.

`mode.autocast` holds one, or None. For an op on a list its floating inputs are cast before it runs, as ops on the tape
of their own, so a gradient arrives in the dtype of the tensor that was cast. Float64, integer and Python inputs are
unchanged.

A leaf that requires grad is a weight, and its cast is kept until autocasting ends: a layer that is called ten times
casts its weight once. Two things make a kept cast stale: another payload (an optimizer's step, a trace), and a cast
that was not recorded where one is now to be.
"""

from __future__ import annotations

import contextlib

import numpy as np
from jax.core import Tracer

from sbpjax._core.ops.elementwise import to_dtype
from sbpjax._core.ops.layers import fp8
from sbpjax._core.programs.fp32_gradients import cast_back
from sbpjax._core.tensor.dispatch import dispatch
from sbpjax._core.tensor.dispatch.op import Op, op_of
from sbpjax._core.tensor.dispatch.traced import logical_value
from sbpjax._core.tensor.handle import dtype as dtypes
from sbpjax._core.tensor.handle.mode import mode
from sbpjax._core.tensor.handle.tensor import Tensor, wrap_any
from sbpjax._core.tensor.nodes.node import AccumulateGrad, Node, record

from .lists import LOWER, WIDEST, CastPolicy

CASTABLE = (dtypes.bfloat16, dtypes.float16, dtypes.float8_e4m3fn)
_WIDTH = {dtypes.float16: 1, dtypes.bfloat16: 1, dtypes.float32: 2}


class Casting:
    """Autocasting to one dtype by certain lists.

    Args:
        dtype: the lower precision; `float8_e4m3fn` is bfloat16 with 8-bit products of linear layers (`ops.fp8`).
        lists: the precision of each op.
        device_type: the device type given to `autocast`.
        keep: whether casts of weights are kept.
        around: the casting of the surrounding block, whose kept casts are shared.
    """

    __slots__ = ("_kept", "requested", "device_type", "dtype", "keep", "key", "lists")

    def __init__(
        self,
        dtype: dtypes.dtype,
        lists: CastPolicy,
        device_type: str = "cpu",
        keep: bool = True,
        around: Casting | None = None,
    ) -> None:
        self.requested = dtype
        self.dtype = dtypes.bfloat16 if dtype is dtypes.float8_e4m3fn else dtype
        self.lists = lists
        self.device_type = device_type
        self.keep = keep
        self.key = (dtype, lists)
        # Shared with the block around it, as PyTorch's cache is: a nested `autocast` must not cast the weights again.
        self._kept: dict = {} if around is None else around._kept

    def fresh_copy(self) -> Casting:
        """Return the same casting with nothing kept, for a trace of its own."""
        return Casting(self.requested, self.lists, self.device_type, self.keep)

    def inputs(self, op: Op, inputs: tuple) -> tuple:
        """Return the inputs of an op, cast as its list requires."""
        policy = self.lists.policies.get(op.name)
        if policy is None:
            return inputs
        if policy is LOWER:
            target = self.dtype
        elif policy is WIDEST:
            target = _widest(inputs)
        else:
            target = dtypes.float32
            if any(name == "dtype" and value is not None for name, value in op.static):
                return inputs  # the caller passes the dtype
        if target is None:
            return inputs
        return tuple([self.cast(x, target) if isinstance(x, Tensor) else x for x in inputs])

    def select_op(self, op: Op, inputs: tuple) -> tuple[Op, tuple]:
        """Return the op that runs for one, and its inputs."""
        inputs = self.inputs(op, inputs)
        if self.requested is dtypes.float8_e4m3fn and op.name == "linear" and inputs[0].dtype is dtypes.bfloat16:
            if fp8.is_fp8_worthwhile(inputs[0].shape, inputs[1].shape):
                return op_of(fp8.linear_fp8, ()), inputs
        return op, inputs

    def cast(self, x: Tensor, dtype: dtypes.dtype) -> Tensor:
        """Return a float16, bfloat16 or float32 tensor in a dtype; any other tensor as it is."""
        own = x.dtype
        if own is dtype or own not in _WIDTH:
            return x
        edge = x._edge
        # Only narrow copies of weights are kept: they are half the weight's bytes, and read by every call of the layer.
        if edge.__class__ is not AccumulateGrad or not self.keep or _WIDTH[dtype] > _WIDTH[own]:
            return _cast(x, dtype)
        array = x._fresh()._array
        # With the grad mode in the key: a cast that was made under ``no_grad`` leads to no weight.
        found = self._kept.get((id(x), dtype, mode.grad))
        if found is not None and found[0] is array:
            return found[1]
        result = _cast(x, dtype)
        self._kept[id(x), dtype, mode.grad] = array, result, x  # x, so that its id is not given to another
        return result


def _widest(inputs: tuple):
    """Return the dtype that all are cast to; None if they are alike, or one is of another kind."""
    found = {x.dtype for x in inputs if isinstance(x, Tensor) and x.dtype.is_floating_point}
    if len(found) < 2 or not found <= _WIDTH.keys():
        return None
    # The only one that holds both float16 and bfloat16.
    return dtypes.float32


class CastNode(Node):
    """The tape's node of a cast: its backward casts back, any number of times."""

    __slots__ = ("dtype",)

    dtype: dtypes.dtype
    label = "cast_backward"

    def backward(self, grads: list, create_graph: bool) -> tuple:
        grad = grads[0]
        is_weight = self.edges[0].__class__ is AccumulateGrad
        if is_weight and not create_graph and isinstance(grad._array, Tracer):
            # A primitive of its own in a trace, which `_core/programs/fp32_gradients.py` finds: the gradient of a cast
            # weight is summed in float32. That of an activation is as wide as the activation, and half the bytes.
            return (wrap_any(cast_back(logical_value(grad), self.dtype.np), grad._layout),)
        if not create_graph or grad._edge is None:
            return (dispatch.unary(_cast_op(self.dtype), grad),)
        return (_cast(grad, self.dtype),)


def _cast_op(dtype: dtypes.dtype) -> Op:
    return op_of(to_dtype, (("dtype", np.dtype(dtype.np)),))


def _cast(x: Tensor, dtype: dtypes.dtype) -> Tensor:
    edge = x._fresh()._edge
    before, mode.grad = mode.grad, False
    try:
        out = dispatch.unary(_cast_op(dtype), x)
    finally:
        mode.grad = before
    if edge is not None and before:
        # A node that saves nothing: a kept cast is in many graphs, and the first backward would free a node of the op
        # for all of them.
        node = CastNode()
        node.dtype = x.dtype
        record(node, (edge,), (x._idx,), (out,))
    return out


@contextlib.contextmanager
def use_casting(casting: Casting | None):
    """Run ops under a casting, or under none, within the block."""
    before, mode.autocast = mode.autocast, casting
    try:
        yield
    finally:
        mode.autocast = before


def use_fresh_cache():
    """Keep the casts of the block for itself: those of a trace are tracers, of no use outside it."""
    return use_casting(None if mode.autocast is None else mode.autocast.fresh_copy())
