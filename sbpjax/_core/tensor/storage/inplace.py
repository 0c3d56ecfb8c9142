"""In-place ops: checks for writable tensors, and the assignment of an op's result to the tensor.

``x.mul_(w)`` runs ``mul(x, w)`` as any op, then gives ``x`` the result's payload and its place on the tape, and
counts the version up. Arrays are immutable, so no value saved for backward is lost; an error is raised where
PyTorch raises one.

A global tensor keeps its layout. An in-place op on a tensor that the user requested as a partial sum must be linear,
since each rank can only write its own summand: ``mul_(2.0)`` is, ``add_(1.0)`` and ``relu_()`` are not. Where an op
left a partial sum, as ``x[0]`` of rows does, the write converts it, so that ``x[0].relu_()`` means the same in every
layout of ``x``.
"""

from __future__ import annotations

import weakref
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from sbpjax._core import naming
from sbpjax._core.ops import dims
from sbpjax._core.ops.promote import category
from sbpjax._core.tensor.nodes.node import AccumulateGrad
from sbpjax.errors import OpError, OpTypeError, SbpError
from sbpjax.sbp import broadcast

from ..creation import host_constants
from ..creation.number_range import check_fits
from ..dispatch import dispatch
from ..dispatch.op import Op, op_of
from ..handle.mode import mode
from ..handle.tensor import LOCAL, PLACED, Tensor, inplace_error, wrap
from ..nodes.op_node import OpNode
from ..tape.grad_mode import no_grad
from .lazy_random import overwrite
from .payload import payload_metadata
from .storage import base_of, find_repeating_step, write
from .view_steps import apply_steps, put

# Ops allowed on a view that shows an element more than once: the same value everywhere, another shape, and ops of
# which PyTorch only warns.
_HARMLESS = frozenset(
    """fill_ zero_ masked_fill_ squeeze_ unsqueeze_ transpose_ t_ index_fill_ setitem_ fill_diagonal_ threshold_ triu_
 tril_""".split()
)


def check_writable(x: Tensor, operation: str) -> None:
    """Raise unless ``x`` may be written in place now."""
    seen = f"{x.dtype.name}{list(x.shape)}"
    if mode.grad:
        leaf = "Variable" if naming.is_torch() else "Tensor"  # PyTorch's and OneFlow's term
        if x._edge.__class__ is AccumulateGrad:
            raise inplace_error(
                operation,
                f"{seen}, a leaf with requires_grad=True",
                f"a leaf {leaf} that requires grad is being used in an in-place operation",
                "write under sbpjax.no_grad(), or to x.clone()",
            )
        base = base_of(x)
        if base is not None and base._edge is not None:
            meta = x._meta
            if base._edge.__class__ is AccumulateGrad and not meta.no_grad_view:
                raise inplace_error(
                    operation,
                    f"{seen}, a view of a leaf with requires_grad=True",
                    f"a view of a leaf {leaf} that requires grad is being used in an in-place operation",
                    "write under sbpjax.no_grad(), or to x.clone()",
                )
            if meta.no_grad_view:
                raise inplace_error(
                    operation,
                    f"{seen}, a view made under no_grad() of a tensor that requires grad",
                    "such a view is not on the tape, so a recorded write to it would be lost",
                    "make the view outside no_grad(), or write under no_grad()",
                )
            if meta.multi:
                raise inplace_error(
                    operation,
                    f"{seen}, one of several views that one op returned",
                    "an output of a function that returns multiple views must not be modified in place while "
                    "it is recorded",
                    "write to x.narrow(...) instead, or under no_grad()",
                )
    by = None if operation in _HARMLESS else find_repeating_step(x)
    if by is not None:
        raise inplace_error(
            operation,
            f"{seen}, a view by {by}",
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location",
            "x.clone() the tensor before the operation",
        )


def check_result_fits(x: Tensor, out: Tensor, operation: str) -> None:
    """Raise unless a result can become the value of ``x``."""
    if out.shape != x.shape:
        raise inplace_error(
            operation,
            f"output with shape {list(x.shape)} doesn't match the broadcast shape {list(out.shape)}",
            "the result of an in-place op has the shape of the tensor",
            "use the out-of-place op",
        )
    if operation == "abs_" and x.dtype.is_complex:
        rule = "In-place abs is not supported for complex tensors."
        raise inplace_error(operation, f"a tensor of {x.dtype.name}", rule, "x.abs()")
    if category(out.dtype.np) > category(x.dtype.np):
        raise inplace_error(
            operation,
            f"result type {out.dtype.name} can't be cast to the desired output type {x.dtype.name}",
            "the result's kind (bool < integer < float < complex) is at most the tensor's",
            f"x.to({out.dtype!r}) first, or use the out-of-place op",
        )


# Their result can be a partial sum for any layout of ``x``.
_ANY_TERM = frozenset(("add", "sub", "copy", "fill", "zero"))


_COMPARE = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))


def _with_zero_grad(x, other, /):
    """Return ``x``: the result of an in-place comparison is on the tape, with zero gradient for ``other``."""
    return lax.convert_element_type(x, other.dtype)


_BESIDE = Op(_with_zero_grad, name="beside")


def _on_tape(value) -> bool:
    return isinstance(value, Tensor) and value._edge is not None and _can_have_gradient(value)


def _can_have_gradient(x: Tensor) -> bool:
    return x.dtype.is_floating_point or x.dtype.is_complex


def _to_dtype(x, /, dtype):
    return lax.convert_element_type(x, dtype)


def inplace(x: Tensor, op: Op, others: tuple = ()) -> Tensor:
    """Run ``op(x, *others)`` and make its result the value of ``x``; return ``x``."""
    operation = f"{op.name}_"
    if not isinstance(x, Tensor):
        raise _no_tensor(x, operation)
    x._fresh()
    check_writable(x, operation)
    layout = x._layout
    pins = None
    partial = layout is not None and layout.shape is not None and layout.partial_axes
    # As an input of every rank a number would be added to every summand. Where the user requested the sum that is an
    # error; where the planner chose it, it is reduced first.
    number = op.name in ("add", "sub", "rsub") and not (isinstance(others[0], Tensor) and others[0]._layout is not None)
    if partial and number and _is_requested_sum(x):
        raise _nonlinear_error(x, operation, "a number would be added")
    if layout is not None and layout.shape is not None and (not partial or op.name in _ANY_TERM and not number):
        # This converts the other term (from broadcast at no cost) and never ``x``.
        pins = (layout.sbp,)
    # As in PyTorch: the tensor that is written determines the precision.
    before, mode.autocast = mode.autocast, None
    try:
        out = dispatch.run(op, (x, *others), pins)
    except (RuntimeError, ValueError):
        if pins is None:
            raise
        # The pin does not fit, e.g. for another shape; `check_result_fits` raises the error.
        out = dispatch.run(op, (x, *others))
    finally:
        mode.autocast = before
    # ``x.eq_(y)`` of a y that requires grad makes x require grad in PyTorch.
    if op.name in _COMPARE and mode.grad and x._edge is None and _on_tape(others[0]) and _can_have_gradient(x):
        out = dispatch.run(_BESIDE, (out, others[0]))
    return _assign_value(x, out, operation, op.check == "outputs")


def _no_tensor(x, operation: str) -> OpTypeError:
    rule = "its first argument is a tensor, which it writes to"
    return OpTypeError(operation, f"a {type(x).__name__}", rule, "sbpjax.tensor(value)")


def assign_result(x: Tensor, result: Tensor, operation: str = "an in-place op") -> Tensor:
    """Make ``result``, just computed from ``x``, the value of ``x``; return ``x``."""
    if not isinstance(x, Tensor):
        raise _no_tensor(x, operation)
    x._fresh()
    check_writable(x, operation)
    edge = result._fresh()._edge
    return _assign_value(x, result, operation, isinstance(edge, OpNode) and edge.entry.op.check == "outputs")


def assign_out(out: Tensor, result: Tensor) -> Tensor:
    """Write a result into an ``out=`` tensor, which takes its shape; neither may be on the tape."""
    if mode.grad and (out.requires_grad or result._fresh()._edge is not None):
        raise inplace_error(
            "out=...",
            "arguments that require grad",
            "functions with out=... do not support automatic differentiation",
            "assign the result instead, or call under sbpjax.no_grad()",
        )
    if find_repeating_step(out) is not None:
        check_writable(out, "out=...")
    # PyTorch resizes an ``out=`` of another shape, where an in-place op would raise.
    if out.shape != result.shape or out._layout is not None:
        out._set(result._fresh()._array.astype(out.dtype.np), result._layout)
        return out
    return _assign_value(out, result, "out=...", False)


def _assign_value(x: Tensor, out: Tensor, operation: str, saves_result: bool) -> Tensor:
    out._fresh()
    layout: Any = x._layout
    if layout is not None and layout.shape is None:  # of a trace
        layout = None
    check_result_fits(x, out, operation)
    if out.dtype != x.dtype:
        pins = (layout.sbp,) if layout is not None and not layout.partial_axes else None
        out = dispatch.run(op_of(_to_dtype, (("dtype", x.dtype.np),)), (out,), pins)
    if layout is not None and out._layout is not layout and out._layout is not None and out._layout.shape is not None:
        # A sum that the user requested stays one, or the write is an error; a layout of the planner is converted.
        if layout.partial_axes and _is_requested_sum(x):
            out = _keep_partial_sum(x, out, operation)
        else:
            out = out.to_global(layout.placement, layout.sbp)
    # The old value has no influence any more: its gradient is zero.
    if out._edge is None and x._edge is not None and mode.grad:
        pins = (layout.sbp,) if layout is not None else None
        out = dispatch.run(COPY, (x, out), pins)
    _drop_version_check(x, out)
    write(x, out)
    edge = out._edge
    # Backward reads the result (of ``exp_``), which is ``x`` from now on: the check moves from the result's handle,
    # which is dropped, to ``x`` at its new version.
    if saves_result and isinstance(edge, OpNode) and edge.checks:
        edge.checks = (weakref.ref(x), x._version)
    return x


def _keep_partial_sum(x: Tensor, out: Tensor, operation: str) -> Tensor:
    layout, got = x._layout, out._layout
    if any(got.codes[a] != layout.codes[a] for a in layout.partial_axes):
        raise _nonlinear_error(x, operation, f"the result is in {got.sbp}")
    return out if got is layout else out.to_global(layout.placement, layout.sbp)


def _is_requested_sum(x: Tensor) -> bool:
    return x._meta is not None and x._meta.requested_sum


def _nonlinear_error(x: Tensor, operation: str, seen: str) -> SbpError:
    return SbpError(
        operation,
        f"a tensor in {x._layout.sbp}; {seen}",
        "an in-place op on a partial sum must be linear, since it may not convert the tensor it writes",
        "x = x.to_global(sbp=sbpjax.sbp.broadcast) first, or use the out-of-place op",
    )


def _drop_version_check(x: Tensor, out: Tensor) -> None:
    """Remove the version check of ``x`` from its own op's node: the old value is saved, and this write is no error."""
    node = out._edge
    while isinstance(node, OpNode):
        if node.checks:
            pairs = list(zip(node.checks[::2], node.checks[1::2], strict=True))
            node.checks = tuple(v for ref, version in pairs if ref() is not x for v in (ref, version))
            return
        # The node before a cast of the result, which `_assign_value` inserts.
        node = node.edges[0] if node.entry.op.fn is _to_dtype else None


# ----------------------------------------------------------------------------------------------- assigning whole values


def copy_into(x, source, /):
    """Return ``source`` in the shape and dtype of ``x``."""
    source = jnp.asarray(source)
    if jnp.issubdtype(source.dtype, np.complexfloating) and not jnp.issubdtype(x.dtype, np.complexfloating):
        source = jnp.real(source)
    source = lax.convert_element_type(source, x.dtype)
    return source if source.shape == x.shape else jnp.broadcast_to(source, x.shape)


COPY = Op(copy_into, name="copy")


def copy_(self: Tensor, source, non_blocking: bool = False) -> Tensor:
    """Write another tensor's values, broadcast and cast, into this one.

    Args:
        source: a tensor that broadcasts to this one. A NumPy array may be written into a leaf that requires grad
            without `no_grad`, since no gradient goes to it.
        non_blocking: accepted.

    Returns:
        The tensor, in its own sbp and dtype.

    Example:
        >>> flow.zeros(2, 2).copy_(flow.tensor([1.0, 2.0]))
        tensor([[1., 2.],
                [1., 2.]])
    """
    if isinstance(source, Tensor) and source._fresh()._layout is not None and self._layout is not None:
        # A copy may come from another placement; all other ops need one placement.
        if source.placement != self.placement:
            source = source.to_global(self.placement, self.sbp if source.shape == self.shape else None)
        # The tensor stays a sum: from broadcast that moves nothing, the value becomes the summand of the first rank.
        if self._layout.shape is not None and self._layout.partial_axes and source.shape == self.shape:
            source = source.to_global(self.placement, self.sbp)
    if isinstance(source, np.ndarray):
        if self._layout is not None:  # the logical value, which every process has
            source = wrap(jnp.asarray(source)).to_global(self.placement, [broadcast] * len(self.sbp))
        if self._edge.__class__ is AccumulateGrad:
            with no_grad():
                return _copy(self, source)
    return _copy(self, source)


def _copy(x: Tensor, source) -> Tensor:
    return overwrite(x, lambda: inplace(x, COPY, (source,)))


def fill_(self: Tensor, value) -> Tensor:
    """Write one number into every element.

    Args:
        value: a number, or a tensor of one element.

    Returns:
        The tensor, in its own sbp.

    Raises:
        OpError: a tensor of more elements, or a number that the dtype cannot hold.

    Example:
        >>> flow.ones(2).fill_(7)
        tensor([7., 7.])
    """
    if isinstance(value, Tensor) and value.shape.numel() != 1:
        rule = f"fill_ only supports 0-dimension value tensor but got tensor with {value.ndim} dimensions"
        raise OpError("x.fill_(value)", f"a value of {tuple(value.shape)}", rule, "x.copy_(value)")
    check_fits("x.fill_(value)", value, self.dtype.np)
    return self if _filled_on_host(self, value, "fill_") else inplace(self, FILL, (value,))


FILL = Op(copy_into, name="fill")


def zero_(self: Tensor) -> Tensor:
    """Write zeros.

    Returns:
        The tensor, in its own sbp.

    Example:
        >>> flow.ones(2).zero_()
        tensor([0., 0.])
    """
    return self if _filled_on_host(self, 0, "zero_") else inplace(self, ZERO)


def _filled_on_host(x: Tensor, value, operation: str) -> bool:
    """Write a number into a tensor without a program of its shape; return whether that was done."""
    if not isinstance(x, Tensor):
        return False
    array, layout = payload_metadata(x), x._layout
    if x._kind not in (LOCAL, PLACED) or (x._edge is not None and mode.grad):
        return False
    place = (None, layout.placement, layout.sbp) if layout is not None else (host_constants.bound_to(array),)
    made = host_constants.fill_on_host(tuple(x.shape), x.dtype.np, value, *place)
    if made is None:
        return False
    check_writable(x, operation)
    _assign_value(x, made, operation, False)
    return True


def _zero(x, /):
    return jnp.zeros_like(x)


ZERO = Op(_zero, name="zero")


def set_part(x, value, /, *starts, steps):
    """Return ``x`` with a value, broadcast, in the part that view steps select; see `view_steps.put`."""
    value = jnp.asarray(value)
    target = apply_steps(x, *starts, steps=steps).shape
    # NumPy and PyTorch take ``x[0] = ones(1, 3)``; `broadcast_to` does not.
    while value.ndim > len(target) and value.shape[0] == 1:
        value = value[0]
    if dims.broadcast_rule([target, value.shape]) is not None:
        rule = dims.expand_rule(value.shape, target)
        dims.fail("shape", "x[...] = value", f"a value {value.shape} for a part {target}", rule, "value.reshape(...)")
    return put(x, jnp.broadcast_to(value, target) if value.shape != target else value, *starts, steps=steps)
