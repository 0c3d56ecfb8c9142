"""`backward` and `grad`: the entry points of reverse-mode differentiation."""

from __future__ import annotations

import weakref
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from sbpjax._core.compiler import conversions
from sbpjax._core.ops.shapes import arrange
from sbpjax._core.runtime.ambient_mesh import hide_mesh
from sbpjax._core.tensor.creation.convert import move_to_stage
from sbpjax._core.tensor.creation.host_constants import put_like
from sbpjax._core.tensor.creation.like import ones_like
from sbpjax._core.tensor.dispatch import dispatch
from sbpjax._core.tensor.dispatch.op import op_of
from sbpjax._core.tensor.dispatch.placed import match_leaf_layout
from sbpjax._core.tensor.handle.mode import mode
from sbpjax._core.tensor.handle.tensor import Tensor, wrap, wrap_any
from sbpjax.errors import AutogradError, MixedTensorError, OpTypeError

from ..calls.op_errors import check_leaked
from ..nodes.node import AccumulateGrad, RemovableHandle, table_of
from . import engine

# Backwards of losses of one shape and place begin with the same array: making a one costs a transfer, and nothing
# writes it.
_ones: dict = {}
_STACK = op_of(arrange.stack, (("dim", 0),))


def _one_like(x: Tensor) -> Tensor:
    """Return the gradient of a scalar with respect to itself."""
    layout = x._layout
    if x.is_meta:
        return ones_like(x.detach())
    if layout is None:
        if x._kind:
            return wrap_any(jnp.ones_like(x._array))
        array = x._array
        key = (array.dtype, array.shape, array.sharding, array.committed)
        found = _ones.get(key)
        if found is None:
            found = _ones[key] = put_like(np.ones(array.shape, array.dtype), array)
        return wrap(found)
    if layout.shape is None:
        return wrap_any(jnp.ones_like(x._array), layout)
    whole = layout.with_codes((-1,) * len(layout.codes))
    found = _ones.get(whole)
    if found is None:
        ones = np.ones(layout.shape, layout.dtype)
        found = _ones[whole] = conversions.from_logical(ones, layout.placement, whole.sbp)[0]
    return wrap_any(found, whole)


def _tuple(value) -> tuple:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _roots(tensors: tuple, grads: tuple, create_graph: bool) -> list:
    roots = []
    for x, g in zip(tensors, grads, strict=True):
        if not isinstance(x, Tensor):
            raise OpTypeError("backward", f"a {type(x).__name__}", "outputs are tensors", "pass tensors")
        x._fresh()
        if x._edge is None:
            raise AutogradError(
                "backward",
                f"{x.dtype.name}{list(x.shape)} that does not require grad and does not have a grad_fn",
                "element 0 of tensors does not require grad and does not have a grad_fn",
                "set requires_grad=True on an input before computing",
            )
        check_leaked(x)
        if g is None:
            if x.shape.numel() != 1:
                raise AutogradError(
                    "backward without a gradient",
                    f"an output of shape {list(x.shape)}",
                    "grad can be implicitly created only for scalar outputs",
                    "reduce it, e.g. x.sum().backward(), or pass a gradient of its shape",
                )
            g = _one_like(x)
        else:
            g = _check_grad(x, g, create_graph)
        roots.append((x._edge, x._idx, g))
    return roots


def _check_grad(x: Tensor, g, create_graph: bool) -> Tensor:
    if not isinstance(g, Tensor):
        raise OpTypeError("backward", f"a gradient of type {type(g).__name__}", "gradients are tensors", "pass one")
    if g.shape != x.shape:
        raise AutogradError(
            "backward",
            f"a gradient of shape {list(g.shape)} for an output of shape {list(x.shape)}",
            "a gradient has the shape of its output",
            "reshape or expand the gradient",
        )
    if (g._layout is None) != (x._layout is None):
        raise MixedTensorError(
            "backward",
            f"a {'local' if g._layout is None else 'global'} gradient for a "
            f"{'local' if x._layout is None else 'global'} output",
            "output and gradient are both local or both global",
            "gradient.to_global(output.placement, output.sbp), or gradient.to_local()",
        )
    if g.dtype != x.dtype:
        g = g.to(x.dtype)
    # A handle of its own, off the tape: the computation of the user's gradient is not differentiated.
    return g if create_graph else wrap_any(g._fresh()._array, g._layout)


@hide_mesh
def backward(
    tensors: Tensor | Sequence[Tensor],
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensor | Sequence[Tensor] | None = None,
) -> None:
    """Add the gradients of ``tensors`` with respect to the leaves of their graph to the leaves' ``.grad``.

    Args:
        tensors: where to start; scalars, unless ``grad_tensors`` are given.
        grad_tensors: the gradients of the outputs, each of its output's shape.
        retain_graph: keep the graph for another backward; by default as ``create_graph``.
        create_graph: record the backward, so that it can be differentiated.
        inputs: if given, only these tensors get a ``.grad``.

    Raises:
        AutogradError: nothing requires grad, the graph was freed, or a saved tensor was changed in place.
    """
    tensors = _tuple(tensors)
    grads = (None,) * len(tensors) if grad_tensors is None else _tuple(grad_tensors)
    roots = _roots(tensors, grads, create_graph)
    if mode.losses is not None:
        mode.losses += tensors
    # The loss scale: multiplied here, a scaled loss needs no op of its own and the user's loss keeps its value.
    if mode.seed is not None:
        roots = [(node, idx, (g * _on_loss_placement(mode.seed, g)).to(g.dtype)) for node, idx, g in roots]
    retain = create_graph if retain_graph is None else retain_graph
    if inputs is None:
        engine.walk(roots, create_graph, retain)
        return
    inputs = _tuple(inputs)
    if not inputs:
        raise AutogradError("backward", "inputs=()", "inputs names at least one tensor", "leave inputs out")
    capture = {(x._edge, x._idx): None for x in inputs if x._fresh()._edge is not None}
    # Captured, and not left to `AccumulateGrad`: inputs that are no leaves get a ``.grad`` as well, and others must
    # not.
    engine.walk(roots, create_graph, retain, capture)
    for x in inputs:
        found = capture.get((x._edge, x._idx))
        if found is not None:
            own = x._own_meta()
            found = match_leaf_layout(found, x) if x.is_leaf else found
            own.grad = found if own.grad is None else own.grad + found
            if x._edge.__class__ is AccumulateGrad:
                engine.run_post_hooks(x._edge, x)
    engine.run_end_callbacks()


def _batch_grads(outputs: tuple, inputs: tuple, grads: tuple, retain_graph: bool | None, options: dict) -> tuple:
    """Return `grad` of every element of the first dim of some gradients, stacked."""
    counts = {len(g) for g in grads if g is not None}
    if len(counts) != 1:
        rule = "every gradient of an output has a first dim of one size"
        seen = f"sizes {sorted(counts)}"
        raise AutogradError("autograd.grad(is_grads_batched=True)", seen, rule, "grad_outputs=sbpjax.eye(n)")
    rows, last = [], counts.pop() - 1
    for i in range(last + 1):
        row = tuple([None if g is None else g[i] for g in grads])
        rows.append(grad(outputs, inputs, row, True if i < last else retain_graph, **options))
    return tuple([None if column[0] is None else dispatch.run(_STACK, column) for column in zip(*rows, strict=True)])


@hide_mesh
def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor, ...]:
    """Return the gradients of ``outputs`` with respect to ``inputs``, without touching any ``.grad``.

    Args:
        outputs: where to start.
        inputs: tensors of the graph, leaves or not.
        grad_outputs: the gradients of the outputs; ones for scalars by default.
        retain_graph: keep the graph; by default as ``create_graph``.
        create_graph: record the computation of the gradients.
        only_inputs: accepted for PyTorch; gradients are always of the inputs alone.
        allow_unused: give None for an input that the outputs do not depend on, instead of an error.
        is_grads_batched: the first dim of every gradient of an output counts several of them, and so does that of the
            results; the graph is walked once for each.
        materialize_grads: give zeros for such an input.

    Returns:
        One gradient per input, in the layout in which it arrives.

    Raises:
        AutogradError: an input is unused, or does not require grad.
    """
    if is_grads_batched:
        options = {"create_graph": create_graph, "allow_unused": allow_unused, "materialize_grads": materialize_grads}
        return _batch_grads(_tuple(outputs), _tuple(inputs), _tuple(grad_outputs), retain_graph, options)
    outputs, inputs = _tuple(outputs), _tuple(inputs)
    grads = (None,) * len(outputs) if grad_outputs is None else _tuple(grad_outputs)
    for x in inputs:
        if not isinstance(x, Tensor) or x._fresh()._edge is None:
            raise AutogradError(
                "autograd.grad",
                "an input that does not require grad" if isinstance(x, Tensor) else f"a {type(x).__name__} as input",
                "every input is a tensor of the graph",
                "x.requires_grad_() before computing the outputs",
            )
    roots = _roots(outputs, grads, create_graph)
    keys = [(x._edge, x._idx) for x in inputs]
    capture = dict.fromkeys(keys)
    engine.walk(roots, create_graph, create_graph if retain_graph is None else retain_graph, capture)
    engine.drop_end_callbacks()
    found = [capture[k] for k in keys]
    if materialize_grads:
        found = [x.detach() * 0 if g is None else g for x, g in zip(inputs, found, strict=True)]
    elif any(g is None for g in found) and not allow_unused:
        unused = next(i for i, g in enumerate(found) if g is None)
        raise AutogradError(
            "autograd.grad",
            f"input {unused} of {len(inputs)} was not used in the graph",
            "every input must have been used to compute the outputs",
            "pass allow_unused=True to get None for it",
        )
    return tuple(found)


def backward_method(self: Tensor, gradient=None, retain_graph=None, create_graph: bool = False, inputs=None) -> None:
    """Compute the gradients of this tensor with respect to the leaves; see `sbpjax.autograd.backward`.

    Args:
        gradient: the gradient of this tensor, required for several elements.
        retain_graph: keep the graph for another backward; by default as ``create_graph``.
        create_graph: record the backward, so that it can be differentiated.
        inputs: if given, only these tensors get a ``.grad``.

    Returns:
        Nothing; a leaf's ``.grad`` has the leaf's own sbp.

    Raises:
        AutogradError: nothing requires grad, the graph was freed, or a saved tensor was changed in place.

    Example:
        >>> p = flow.placement("cpu", [0, 1])
        >>> w = flow.ones(4, placement=p, sbp=flow.sbp.broadcast, requires_grad=True)
        >>> x = flow.arange(4.0).to_global(p, flow.sbp.split(0))
        >>> (w * x).sum().backward()
        >>> w.grad.tolist(), w.grad.sbp
        ([0.0, 1.0, 2.0, 3.0], (sbpjax.sbp.broadcast,))
    """
    backward(self, gradient, retain_graph, create_graph, inputs)


def register_hook(self: Tensor, hook):
    """Call ``hook(grad)`` when this tensor's gradient is known; its result, unless None, replaces the gradient."""
    self._fresh()
    if self._edge is None:
        raise AutogradError(
            "register_hook",
            "a tensor that doesn't require gradient",
            "only tensors that require grad have a gradient to hook",
            "x.requires_grad_()",
        )
    table = table_of(self._edge)
    return table.add(table.on_output(self._idx), hook)


def register_post_accumulate_grad_hook(self: Tensor, hook):
    """Call ``hook(tensor)`` after a leaf's ``.grad`` was updated."""
    if self._edge.__class__ is not AccumulateGrad:
        raise AutogradError(
            "register_post_accumulate_grad_hook",
            "a tensor that is no leaf requiring grad",
            "only leaves accumulate",
            "use register_hook",
        )
    if self._edge.post is None:
        self._edge.post = {}
    return RemovableHandle(self._edge.post, hook)


def retain_grad(self: Tensor) -> None:
    """Keep the gradient of a computed tensor in its ``.grad``; on a leaf it does nothing."""
    self._fresh()
    if self._edge is None:
        raise AutogradError(
            "retain_grad()", "a tensor with requires_grad=False", "it has no gradient", "x.requires_grad_()"
        )
    if self._edge.__class__ is not AccumulateGrad:
        table_of(self._edge).retain[self._idx] = weakref.ref(self)


def _on_loss_placement(seed, like):
    """Return the initial gradient on the placement of a loss: the loss scale may be on another stage."""
    if getattr(seed, "_layout", None) is None or like._layout is None:
        return seed
    return move_to_stage(seed, like._layout.placement)
