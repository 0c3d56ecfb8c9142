"""`Function`: user-defined ops with a custom backward.

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
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.core import Tracer

from sbpjax._core.tensor.creation.like import zeros_like
from sbpjax._core.tensor.dispatch.traced import logical_value
from sbpjax._core.tensor.handle.mode import mode
from sbpjax._core.tensor.handle.tensor import Tensor, restore, wrap_any
from sbpjax.errors import AutogradError, ModuleMethodError

from ..nodes.node import FREED, Node, record
from . import saved_tensors as graph

ACROSS: dict[str, Callable[..., Tensor]] = {}  # collectives on the tape; `sbpjax.distributed.functional` enters them


class FunctionCtx:
    """Context passed from forward to backward: saved tensors, and any attribute the user sets."""

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
                    "ctx.save_for_backward(...)",
                    f"a {type(t).__name__}",
                    "only tensors (or None) are saved this way",
                    "set other values as attributes: ctx.value = value",
                )
        self._saved = tensors

    @property
    def saved_tensors(self) -> tuple:
        """The tensors kept by `save_for_backward`.

        Raises:
            AutogradError: the graph was freed, or a saved tensor was changed in place.
        """
        if self._saved is FREED:
            raise AutogradError(
                "ctx.saved_tensors",
                "the saved tensors were freed by an earlier backward()",
                "a graph can be walked once, unless it is retained",
                "call the first backward with retain_graph=True",
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
                    "ctx.saved_tensors",
                    f"a saved tensor was modified by an inplace operation: it is at version {t._version}, "
                    f"expected version {version}",
                    "a tensor that backward needs must not change between forward and backward",
                    "save x.clone()",
                )
            # As it hung when it was saved: an in-place op may have hung the tensor on a later node since, without a
            # change that backward must know of.
            restored.append(t if edge is t._edge and t._array is array else restore(array, layout, edge, idx))
        return tuple(restored)

    saved_variables = saved_tensors

    def mark_non_differentiable(self, *tensors) -> None:
        """Mark outputs as having no gradient."""
        self._non_differentiable = {id(t) for t in tensors}

    def mark_dirty(self, *tensors) -> None:
        """Mark inputs that forward changed in place."""
        self._dirty = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Set whether backward gets zeros (the default) or None for outputs without a gradient."""
        self._materialize = value


class FunctionNode(Node):
    """The tape's node of one `Function.apply`."""

    __slots__ = ("count", "ctx", "function", "likes", "places", "shapes")

    count: int
    ctx: Any
    function: Any
    likes: tuple
    places: tuple
    shapes: tuple

    @property
    def n_out(self) -> int:
        return self.count

    def name(self) -> str:
        return f"{self.function.__name__}Backward"

    def backward(self, grads: list, create_graph: bool) -> tuple:
        ctx = self.ctx
        if ctx._materialize:
            grads = [self._zeros(i) if g is None else g for i, g in enumerate(grads)]
        result = _check_gradient_count(self.function, self.function.backward(ctx, *grads), len(ctx.needs_input_grad))
        return tuple(self._sum_to_shape(result[i], shape, i) for i, shape in zip(self.places, self.shapes, strict=True))

    def _sum_to_shape(self, g, shape: tuple, place: int):
        """Return the gradient of an input, summed over the dims it was broadcast along, as in PyTorch."""
        if g is not None and not isinstance(g, Tensor):
            raise AutogradError(
                f"{self.function.__name__}.backward",
                f"a gradient of type {type(g).__name__}",
                "gradients are tensors or None",
                "return tensors",
            )
        if g is None or tuple(g.shape) == shape:
            return g
        extra = g.ndim - len(shape)
        if extra < 0 or any(n not in (1, m) for n, m in zip(shape, g.shape[extra:], strict=True)):
            raise AutogradError(
                f"{self.function.__name__}.backward",
                f"a gradient of shape {tuple(g.shape)} for an input of shape {shape}",
                f"Function {self.name()} returned an invalid gradient at index {place} - got {list(g.shape)} but "
                f"expected shape compatible with {list(shape)}",
                "return the shape of the input, or one that the input broadcasts to",
            )
        dims = (*range(extra), *(extra + d for d, n in enumerate(shape) if n == 1))
        return g.sum(dims, keepdim=True).reshape(shape) if dims else g

    def _zeros(self, i: int):
        like = self.likes[i]
        if like is None:
            return None
        return zeros_like(wrap_any(*like))

    def release(self) -> None:
        if self.ctx._saved:
            self.ctx._saved = FREED


def _missing_method_error(name: str, arguments: str) -> ModuleMethodError:
    return ModuleMethodError(
        "applying an autograd.Function",
        f"a Function without a static {name}",
        "a Function defines forward, and backward if a gradient runs through it",
        f"@staticmethod def {name}({arguments}): ...",
    )


class Function(FunctionCtx):
    """Base of ops with their own backward: define static ``forward(ctx, *args)`` and ``backward(ctx, *grads)``.

    With a static ``setup_context(ctx, inputs, output)``, ``forward`` takes no ``ctx``.
    """

    @staticmethod
    def forward(*args, **kwargs):
        """Compute the outputs."""
        raise _missing_method_error("forward", "ctx, *inputs")

    @staticmethod
    def backward(ctx, *grads):
        """Return the gradient of each input for the gradients of the outputs."""
        raise _missing_method_error("backward", "ctx, *grads")

    vjp = backward
    setup_context = None

    @classmethod
    def apply(cls, *args):
        """Run forward, and put the op on the tape."""
        if mode.closure is None or not any(isinstance(a, Tensor) and isinstance(a._array, Tracer) for a in args):
            return cls._apply_forward(args)
        # Under a transform of `sbpjax.func` JAX differentiates, and would look through forward past the backward of the
        # user.
        found = cls._apply_transformed(args)
        if not (mode.grad and any(isinstance(a, Tensor) and a.requires_grad for a in args)):
            return found
        # For the tape in the trace; the values are those that JAX differentiates.
        taped = cls._apply_forward(args)
        outs = (taped,) if isinstance(taped, Tensor) else taped
        for out, other in zip(outs, (found,) if isinstance(found, Tensor) else found, strict=True):
            out._array = other._array
        return taped

    @classmethod
    def _apply_forward(cls, args: tuple):
        ctx = FunctionCtx()
        tensors = [a if isinstance(a, Tensor) else None for a in args]
        # Before forward, which may read it to save less.
        ctx.needs_input_grad = tuple(t is not None and t._fresh()._edge is not None for t in tensors)
        recording = mode.grad and any(ctx.needs_input_grad)
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
    def _apply_transformed(cls, args: tuple):
        """Run forward in a trace that JAX differentiates (`sbpjax.func`), with the user's backward as its gradient."""
        places = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        layout = next((args[i]._layout for i in places if args[i]._layout is not None), None)
        held: dict = {}

        def run(arrays):
            full = list(args)
            for i, array in zip(places, arrays, strict=True):
                full[i] = wrap_any(array, layout)
            ctx = FunctionCtx()
            ctx.needs_input_grad = tuple(isinstance(a, Tensor) and _has_gradient(a) for a in full)
            before, mode.grad = mode.grad, False
            try:
                if cls.setup_context is not None:
                    result = cls.forward(*full)
                    cls.setup_context(ctx, tuple(full), result)
                else:
                    result = cls.forward(ctx, *full)
            finally:
                mode.grad = before
            # Outside the trace: `custom_vjp` passes on arrays alone.
            held["single"] = not isinstance(result, (tuple, list))
            return ctx, [logical_value(o) for o in ((result,) if held["single"] else result)]

        def call(*arrays):
            return run(arrays)[1]

        def forward(*arrays):
            ctx, outs = run(arrays)
            held["ctx"] = ctx
            saved = [None if t is None else logical_value(t) for t in ctx._saved]
            return outs, (saved, arrays)

        def backward(kept, cotangents):
            saved, arrays = kept
            ctx = held["ctx"]
            # The residuals that JAX hands in, not the tensors of the forward's trace: JAX may have traced the two apart
            # (vmap, remat).
            ctx._saved = tuple(None if a is None else wrap_any(a, layout) for a in saved)
            ctx._versions = tuple(None if t is None else (t._version, None, 0, t._array, layout) for t in ctx._saved)
            grads = cls.backward(ctx, *[_cotangent(c, layout) for c in cotangents])
            grads = _check_gradient_count(cls, grads, len(args))
            found = [grads[i] for i in places]
            return tuple(
                _gradient(None if g is None else logical_value(g), a) for g, a in zip(found, arrays, strict=True)
            )

        whole = jax.custom_vjp(call)
        whole.defvjp(forward, backward)
        outs = [wrap_any(o, layout) for o in whole(*[logical_value(args[i]) for i in places])]
        return outs[0] if held["single"] else tuple(outs)

    @classmethod
    def _record(cls, ctx: FunctionCtx, tensors: list, outs: list) -> list:
        node = FunctionNode()
        node.function, node.ctx, node.count = cls, ctx, len(outs)
        node.places = tuple(i for i, need in enumerate(ctx.needs_input_grad) if need)
        sources = [tensors[i] for i in node.places]
        node.shapes = tuple(tuple(x.shape) for x in sources)
        # Tensors by identity: `==` compares their elements.
        saved = {id(t) for t in ctx._saved if t is not None}
        inputs = {id(t) for t in tensors if t is not None}
        likes, hanging = [], []
        for i, out in enumerate(outs):
            if not isinstance(out, Tensor) or not (out.dtype.is_floating_point or out.dtype.is_complex):
                likes.append(None)
                continue
            if id(out) in ctx._non_differentiable:
                likes.append((out._fresh()._array, out._layout))
                continue
            # An input that forward returns as it is gets a handle of its own: hung on this node, the input would be its
            # own ancestor.
            out._fresh()  # forward may have written into `x.data` or `x.detach()`, beside this handle
            if id(out) in inputs and not any(out is d for d in ctx._dirty):
                out = outs[i] = wrap_any(out._array, out._layout)
            likes.append((out._array, out._layout))
            hanging.append(i)
        node.likes = tuple(likes)
        record(node, tuple(x._edge for x in sources), tuple(x._idx for x in sources), outs, hanging)
        ctx._versions = tuple(
            None if t is None else (t._version, t._fresh()._edge, t._idx, t._array, t._layout) for t in ctx._saved
        )
        hooks = graph.active_hooks()
        if hooks is not None:
            ctx._versions = tuple(None if t is None else _Packed(hooks[0](t.detach()), hooks[1]) for t in ctx._saved)
            ctx._saved = tuple(None if t is None else v for t, v in zip(ctx._saved, ctx._versions, strict=True))
        elif saved & {id(o) for o in outs}:  # an output that holds its own node would be a cycle: keep it by payload
            ctx._saved = tuple(
                restore(t._array, t._layout, None, 0) if t is not None and t._edge is node else t for t in ctx._saved
            )
            ctx._versions = tuple(
                None if t is None else (t._version, v[1], v[2], t._array, t._layout)
                for t, v in zip(ctx._saved, ctx._versions, strict=True)
            )
        return outs


def _check_gradient_count(function: type[Function], result: Any, total: int) -> tuple:
    """Return the result of a backward as a tuple; raise unless it has a gradient or None for each input."""
    result = result if isinstance(result, tuple) else (result,)
    # More than one per input is taken if it is None, as in PyTorch.
    if len(result) < total or any(g is not None for g in result[total:]):
        raise AutogradError(
            f"{function.__name__}.backward",
            f"{len(result)} gradients for {total} inputs",
            f"function {function.__name__}Backward returned an incorrect number of gradients (expected {total}, got "
            f"{len(result)})",
            "return None for inputs without a gradient",
        )
    return result


def _has_gradient(x: Tensor) -> bool:
    return x.dtype.is_floating_point or x.dtype.is_complex


def _gradient(g, a):
    """Return a gradient in the form that JAX wants for an input: zeros for None, nothing for integers."""
    if not jax.numpy.issubdtype(a.dtype, jax.numpy.inexact):
        return np.zeros(a.shape, jax.dtypes.float0)
    if g is None:
        return jax.numpy.zeros_like(a)
    if g.shape != a.shape:  # of the shape that the input was broadcast to
        extra = g.ndim - a.ndim
        g = g.sum((*range(extra), *(extra + d for d, n in enumerate(a.shape) if n == 1))).reshape(a.shape)
    return g.astype(a.dtype)


def _cotangent(c, layout):
    return None if c.dtype == jax.dtypes.float0 else wrap_any(c, layout)


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
        out = wrap_any(g._fresh()._array, g._layout)
        node = FunctionNode()
        node.function, node.ctx, node.count, node.likes = _Once, FunctionCtx(), 1, (None,)
        node.places = node.shapes = ()
        record(node, (), (), (out,))
        return out

    @staticmethod
    def backward(ctx, *grads):
        raise AutogradError(
            "differentiating a gradient",
            "a backward marked once_differentiable",
            "such a backward cannot be differentiated again",
            "write the backward with tensor ops and without the mark",
        )
