"""`Function`: an op with a backward of the user's own.

Worked case::

    class Cube(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 3 * x * x * grad

    y = Cube.apply(x)
"""

from __future__ import annotations

import functools
from typing import Any

from sbpjax.errors import AutogradError, ModuleMethodError, message
from sbpjax.tensor import dispatch
from sbpjax.tensor.mode import mode
from sbpjax.tensor.tensor import Tensor

from . import graph
from .node import FREED, Node, sequence


class FunctionCtx:
    """What forward leaves for backward: saved tensors, and any attribute the user sets."""

    def __init__(self) -> None:
        self.needs_input_grad: tuple[bool, ...] = ()
        self._saved: Any = ()
        self._versions: tuple = ()
        self._non_differentiable: set[int] = set()
        self._dirty: tuple = ()
        self._materialize = True

    def save_for_backward(self, *tensors) -> None:
        """Keep inputs or outputs of forward for backward; other things may be set as attributes."""
        for t in tensors:
            if t is not None and not isinstance(t, Tensor):
                raise AutogradError(
                    message(
                        "ctx.save_for_backward(...)",
                        f"a {type(t).__name__}",
                        "only tensors (or None) are saved this way",
                        "set other values as attributes: ctx.value = value",
                    )
                )
        self._saved = tensors

    @property
    def saved_tensors(self) -> tuple:
        """What `save_for_backward` kept.

        Raises:
            AutogradError: the graph was freed, or a saved tensor was changed in place.
        """
        if self._saved is FREED:
            raise AutogradError(
                message(
                    "ctx.saved_tensors",
                    "the saved tensors were freed by an earlier backward()",
                    "a graph can be walked once, unless it is retained",
                    "call the first backward with retain_graph=True",
                )
            )
        restored = []
        for t, entry in zip(self._saved, self._versions, strict=True):
            if t is None:
                restored.append(None)
                continue
            if entry.__class__ is _Packed:
                restored.append(entry.unpack(entry.value))
                continue
            version, edge, idx, array, layout = entry
            if t._version != version:
                raise AutogradError(
                    message(
                        "ctx.saved_tensors",
                        f"a saved tensor was modified by an inplace operation: it is at version {t._version}, "
                        f"expected version {version}",
                        "what backward needs must not change between forward and backward",
                        "save x.clone()",
                    )
                )
            restored.append(t if edge is t._edge and t._array is array else dispatch.restore(array, layout, edge, idx))
        return tuple(restored)

    saved_variables = saved_tensors

    def mark_non_differentiable(self, *tensors) -> None:
        """Say that these outputs have no gradient."""
        self._non_differentiable = {id(t) for t in tensors}

    def mark_dirty(self, *tensors) -> None:
        """Say that forward changed these inputs in place."""
        self._dirty = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Say whether backward gets zeros (the default) or None for outputs without a gradient."""
        self._materialize = value


class FunctionNode(Node):
    """The tape's node of one `Function.apply`."""

    __slots__ = ("count", "ctx", "function", "likes", "places")

    count: int
    ctx: Any
    function: Any
    likes: tuple
    places: tuple

    @property
    def n_out(self) -> int:
        return self.count

    def name(self) -> str:
        return f"{self.function.__name__}Backward"

    def backward(self, grads: list, create_graph: bool) -> tuple:
        ctx = self.ctx
        if ctx._materialize:
            grads = [self._zeros(i) if g is None else g for i, g in enumerate(grads)]
        result = self.function.backward(ctx, *grads)
        result = result if isinstance(result, tuple) else (result,)
        total = len(ctx.needs_input_grad)
        if len(result) < total or any(g is not None for g in result[total:]):
            raise AutogradError(
                message(
                    f"{self.function.__name__}.backward",
                    f"{len(result)} gradients for {total} inputs",
                    f"backward returns one gradient per input of forward: expected {total}, got {len(result)}",
                    "return None for inputs without a gradient",
                )
            )
        return tuple(self._fitting(result[i]) for i in self.places)

    def _fitting(self, g):
        if g is not None and not isinstance(g, Tensor):
            raise AutogradError(
                message(
                    f"{self.function.__name__}.backward",
                    f"a gradient of type {type(g).__name__}",
                    "gradients are tensors or None",
                    "return tensors",
                )
            )
        return g

    def _zeros(self, i: int):
        from sbpjax.tensor.creation import zeros_like

        like = self.likes[i]
        if like is None:
            return None
        return zeros_like(dispatch.wrap_any(*like))

    def release(self) -> None:
        if self.ctx._saved:
            self.ctx._saved = FREED


def _missing(name: str, arguments: str) -> ModuleMethodError:
    return ModuleMethodError(
        message(
            "applying an autograd.Function",
            f"a Function without a static {name}",
            "a Function defines forward, and backward if a gradient runs through it",
            f"@staticmethod def {name}({arguments}): ...",
        )
    )


class Function:
    """Base of ops with their own backward: define static ``forward(ctx, *args)`` and ``backward(ctx, *grads)``.

    With a static ``setup_context(ctx, inputs, output)``, ``forward`` takes no ``ctx``.
    """

    @staticmethod
    def forward(*args, **kwargs):
        """Compute the outputs."""
        raise _missing("forward", "ctx, *inputs")

    @staticmethod
    def backward(ctx, *grads):
        """Return the gradient of each input for the gradients of the outputs."""
        raise _missing("backward", "ctx, *grads")

    vjp = backward
    setup_context = None

    @classmethod
    def apply(cls, *args):
        """Run forward, and put the op on the tape."""
        ctx = FunctionCtx()
        tensors = [a if isinstance(a, Tensor) else None for a in args]
        recording = mode.grad and any(t is not None and t._fresh()._edge is not None for t in tensors)
        ctx.needs_input_grad = tuple(t is not None and t._edge is not None for t in tensors)
        before, mode.grad = mode.grad, False
        try:
            if cls.setup_context is not None:
                result = cls.forward(*args)
                cls.setup_context(ctx, args, result)
            else:
                result = cls.forward(ctx, *args)
        finally:
            mode.grad = before
        single = not isinstance(result, (tuple, list))
        outs = [result] if single else list(result)
        if recording:
            outs = cls._record(ctx, tensors, outs)
        return outs[0] if single else tuple(outs)

    @classmethod
    def _record(cls, ctx: FunctionCtx, tensors: list, outs: list) -> list:
        node = FunctionNode()
        node.function, node.ctx, node.hooks, node.seq = cls, ctx, None, sequence()
        node.places = tuple(i for i, need in enumerate(ctx.needs_input_grad) if need)
        node.edges = tuple(tensors[i]._edge for i in node.places)
        node.idxs = tuple(tensors[i]._idx for i in node.places)
        node.count = len(outs)
        saved = {id(t) for t in ctx._saved if t is not None}
        inputs = {id(t) for t in tensors if t is not None}
        likes = []
        for i, out in enumerate(outs):
            if not isinstance(out, Tensor) or not (out.dtype.is_floating_point or out.dtype.is_complex):
                likes.append(None)
                continue
            if id(out) in ctx._non_differentiable:
                likes.append((out._array, out._layout))
                continue
            if id(out) in inputs and not any(out is d for d in ctx._dirty):
                out = outs[i] = dispatch.wrap_any(out._array, out._layout)
            likes.append((out._array, out._layout))
            out._edge, out._idx = node, i
        node.likes = tuple(likes)
        ctx._versions = tuple(
            None if t is None else (t._version, t._edge, t._idx, t._array, t._layout) for t in ctx._saved
        )
        hooks = graph.active_hooks()
        if hooks is not None:
            ctx._versions = tuple(None if t is None else _Packed(hooks[0](t.detach()), hooks[1]) for t in ctx._saved)
            ctx._saved = tuple(None if t is None else v for t, v in zip(ctx._saved, ctx._versions, strict=True))
        elif saved & {id(o) for o in outs}:  # an output that holds its own node would be a cycle: keep it by payload
            ctx._saved = tuple(
                dispatch.restore(t._array, t._layout, None, 0) if t is not None and t._edge is node else t
                for t in ctx._saved
            )
            ctx._versions = tuple(
                None if t is None else (t._version, v[1], v[2], t._array, t._layout)
                for t, v in zip(ctx._saved, ctx._versions, strict=True)
            )
        return outs


class _Packed:
    """A saved tensor in the form that a hook gave it, see `sbpjax.autograd.graph`."""

    __slots__ = ("unpack", "value")

    def __init__(self, value, unpack) -> None:
        self.value = value
        self.unpack = unpack


def once_differentiable(backward):
    """Mark a Function's backward as one that cannot be differentiated again: doing so is an error."""

    @functools.wraps(backward)
    def wrapper(ctx, *grads):
        before, mode.grad = mode.grad, False
        try:
            result = backward(ctx, *grads)
        finally:
            mode.grad = before
        if not before or not any(isinstance(g, Tensor) and g._edge is not None for g in grads):
            return result
        single = not isinstance(result, tuple)
        outs = tuple(_Once.apply(g) if isinstance(g, Tensor) else g for g in ((result,) if single else result))
        return outs[0] if single else outs

    return wrapper


class _Once(Function):
    @staticmethod
    def apply(g):
        out = dispatch.wrap_any(g._array, g._layout)
        node = FunctionNode()
        ctx = FunctionCtx()
        node.function, node.ctx, node.hooks, node.seq = _Once, ctx, None, sequence()
        node.places = node.edges = node.idxs = ()
        node.count, node.likes = 1, (None,)
        out._edge, out._idx = node, 0
        return out

    @staticmethod
    def backward(ctx, *grads):
        raise AutogradError(
            message(
                "differentiating a gradient",
                "a backward marked once_differentiable",
                "such a backward cannot be differentiated again",
                "write the backward with tensor ops and without the mark",
            )
        )
