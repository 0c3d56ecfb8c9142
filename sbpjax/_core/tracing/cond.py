"""`cond`: runs one of two functions, chosen by a tensor, in eager code and inside compiled programs.

    y = cond(loss > limit, lambda x: x * 0.5, lambda x: x, x)

Eagerly this is Python's ``if``. In a trace no value exists yet: both functions are traced, and the program runs the one
that the condition names. Their backward is a choice too: it runs the chosen function again and differentiates it, so
nothing of either is kept; tensors that a function closes over, such as parameters, get their gradients as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.creation.generator import default_generator
from sbpjax._core.tensor.dispatch.traced import logical_value, unpin_layout
from sbpjax._core.tensor.handle.mode import mode
from sbpjax._core.tensor.handle.tensor import wrap_any
from sbpjax._core.tensor.nodes.node import AccumulateGrad, Node, record, sequence
from sbpjax._core.tensor.storage.payload import edge_of, is_traced, payload
from sbpjax._core.tensor.tape import engine
from sbpjax.errors import OpError, OpTypeError


def cond(pred: Tensor | bool, true_fn: Callable, false_fn: Callable, *operands: Any) -> Any:
    """Return ``true_fn(*operands)`` if a condition holds, else ``false_fn(*operands)``.

    Args:
        pred: a bool, or a tensor of one element.
        true_fn: a function of the operands that returns a tensor or a tuple of tensors, and writes nothing in place.
        false_fn: the same, with results of the same shapes and dtypes.
        *operands: tensors and other values, passed on.

    Raises:
        OpTypeError: a function returns something else than tensors.
        OpError: the results of the two do not fit each other, or one writes a tensor in place.

    Example:
        >>> cond(x.sum() > 0, lambda x: x, lambda x: -x, x)
    """
    if not is_traced(pred):
        return (true_fn if pred else false_fn)(*operands)
    if pred.numel() != 1:
        raise OpError(
            "cond(pred, ...)",
            f"pred of shape {list(pred.shape)}",
            "a condition has one element",
            "cond(x.any(), ...) or cond(x.all(), ...); sbpjax.where chooses element by element",
        )
    choice = logical_value(pred).reshape(()).astype(bool)
    branches = [_Branch(fn, operands) for fn in (true_fn, false_fn)]
    shapes = [jax.eval_shape(branch.values) for branch in branches]
    if [(x.shape, x.dtype) for x in shapes[0]] != [(x.shape, x.dtype) for x in shapes[1]]:
        texts = [", ".join(f"{x.dtype}{list(x.shape)}" for x in found) or "nothing" for found in shapes]
        raise OpError(
            "cond(pred, true_fn, false_fn)",
            f"true_fn returns {texts[0]}; false_fn returns {texts[1]}",
            "both return tensors of the same shapes and dtypes",
            "cast or expand the results of one of them",
        )
    arrays = jax.lax.cond(choice, *(branch.values for branch in branches))
    layout = next((b.layout for b in branches if b.layout is not None), None)
    outs = [wrap_any(array, layout) for array in arrays]
    default_generator._counter = max(branch.counter for branch in branches)
    edges = list(dict.fromkeys(edge for branch in branches for edge in branch.sources))
    if mode.grad and edges:
        node = CondNode()
        node.choice, node.branches = choice, branches
        node.shapes = [(x.shape, x.dtype) for x in shapes[0]]
        hanging = [i for i, out in enumerate(outs) if jnp.issubdtype(payload(out).dtype, jnp.inexact)]
        record(node, tuple(e for e, _ in edges), tuple(i for _, i in edges), outs, hanging)
    return outs[0] if branches[0].single else tuple(outs)


class _Branch:
    """One of the two functions, to be run in traces of its own.

    Attributes:
        sources: ``(node, idx)`` of the tensors from outside that its results depend on.
        single: whether it returns one tensor.
        layout: that of global results.
        counter: how many random numbers were drawn up to its end.
    """

    def __init__(self, fn: Callable, operands: tuple) -> None:
        self._fn, self._operands = fn, operands
        self._start = default_generator._counter
        self.sources: dict = {}
        self.single = True
        self.layout: Any = None
        self.counter = self._start

    def values(self) -> tuple:
        """Return the results as arrays."""
        return tuple(logical_value(x) for x in self._run())

    def _run(self) -> list[Tensor]:
        here = getattr(jnp.zeros(()), "_trace", None)
        before, mode.touch = mode.touch, lambda x: _refuse(x, here)
        first = sequence()
        default_generator._counter = self._start
        try:
            result = self._fn(*self._operands)
        finally:
            mode.touch = before
            self.counter, default_generator._counter = default_generator._counter, self._start
        self.single = isinstance(result, Tensor)
        outs = [result] if self.single else list(result) if isinstance(result, (tuple, list)) else [result]
        for x in outs:
            if not isinstance(x, Tensor):
                raise OpTypeError(
                    "cond(pred, true_fn, false_fn)",
                    f"a function that returns a {type(x).__name__}",
                    "both functions return a tensor or a tuple of tensors",
                    "wrap numbers: sbpjax.tensor(1.0)",
                )
        self.layout = next((unpin_layout(x.layout) for x in outs if x.layout is not None), None)
        self.sources = _sources([x for x in outs if x.requires_grad], first)
        return outs

    def gradients(self, cotangents: list, edges: list) -> list:
        """Return the gradients of the sources, None where a source has no part in the result."""
        recording, mode.grad = mode.grad, True
        try:
            outs = self._run()
            capture = dict.fromkeys(edges)
            roots = [
                (*edge_of(x), wrap_any(g, x.layout)) for x, g in zip(outs, cotangents, strict=True) if x.requires_grad
            ]
            if roots:
                engine.walk(roots, False, False, capture)
        finally:
            mode.grad = recording
        return [None if capture[edge] is None else logical_value(capture[edge]) for edge in edges]


def _refuse(x: Any, here: Any) -> None:
    """Raise for a write to any tensor that the function did not make itself, in its own trace."""
    if is_traced(x) and payload(x)._trace is here:
        return
    raise OpError(
        "cond(pred, true_fn, false_fn)",
        "a function that writes a tensor in place, or steps an optimizer",
        "both functions are traced and only one runs, so they change nothing",
        "return the new value, and write it after the cond",
    )


def _sources(outs: list[Tensor], first: int) -> dict:
    """Return the edges at which the tape of some tensors leaves the part recorded since a sequence number."""
    found: dict = {}
    stack = [edge_of(x) for x in outs]
    seen = set()
    while stack:
        node, idx = stack.pop()
        if node.__class__ is AccumulateGrad or node.seq < first:
            found[node, idx] = None
        elif node not in seen:
            seen.add(node)
            stack += [(e, i) for e, i in zip(node.edges, node.idxs, strict=True) if e is not None]
    return found


class CondNode(Node):
    """The tape's node of a choice."""

    __slots__ = ("branches", "choice", "shapes")

    branches: Any
    choice: Any
    shapes: Any

    label = "cond_backward"

    @property
    def n_out(self) -> int:
        return len(self.shapes)

    def backward(self, grads: list, create_graph: bool) -> tuple:
        edges = list(zip(self.edges, self.idxs, strict=True))
        cotangents = [
            jnp.zeros(shape, dtype) if g is None else logical_value(g).astype(dtype)
            for g, (shape, dtype) in zip(grads, self.shapes, strict=True)
        ]
        shapes = [jax.eval_shape(lambda b=b: b.gradients(cotangents, edges)) for b in self.branches]
        kinds = [a if a is not None else b for a, b in zip(*shapes, strict=True)]

        def of(branch: _Branch) -> Callable:
            def run() -> list:
                found = branch.gradients(cotangents, edges)
                return [
                    None if kind is None else jnp.zeros(kind.shape, kind.dtype) if g is None else g.astype(kind.dtype)
                    for g, kind in zip(found, kinds, strict=True)
                ]

            return run

        results = jax.lax.cond(self.choice, *(of(branch) for branch in self.branches))
        layout = next((b.layout for b in self.branches if b.layout is not None), None)
        return tuple(None if g is None else wrap_any(g, layout) for g in results)
