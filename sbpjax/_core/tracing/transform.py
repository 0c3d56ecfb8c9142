"""JAX transforms of functions of tensors: traced to a function of arrays, transformed, run as one op.

``vmap(f)(x)`` is worked out so: `f` runs once on tensors that hold tracers, under ``jax.vmap`` and ``jax.make_jaxpr``;
tensors that it reads from outside (the parameters of a closed-over model) become further inputs; the resulting program
is one op of `_core.tensor.dispatch.dispatch`. So it runs on local and global tensors and inside other traces, and
gradients flow through it to its arguments and to closed-over tensors. It is traced anew on every call, since Python may
do something else then; a program that was met before is not compiled again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from sbpjax._core.compiler import conversions
from sbpjax._core.jax_private import ClosedJaxpr, jaxpr_as_fun
from sbpjax._core.jax_private import core as jax_core
from sbpjax._core.runtime.ambient_mesh import hide_mesh
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.creation.generator import default_generator
from sbpjax._core.tensor.dispatch import dispatch
from sbpjax._core.tensor.dispatch.op import Op
from sbpjax._core.tensor.dispatch.op_calls import inline_calls
from sbpjax._core.tensor.dispatch.traced import as_traced, is_per_process, logical_value, note_per_process
from sbpjax._core.tensor.handle.mode import mode
from sbpjax._core.tensor.handle.tensor import wrap_any
from sbpjax._core.tensor.storage.payload import payload, put_from, refresh_tensor
from sbpjax._core.tracing.captured import Captured, example
from sbpjax._core.tracing.traced import Traced
from sbpjax.errors import OpError, OpTypeError
from sbpjax.sbp import broadcast

from . import tree
from .escaped_tensors import EscapedTensors, Output, belongs_to_trace, common_placement, settle_escaped, text_of
from .outside_writes import OutsideWrites
from .signature import Call

_PROGRAMS: dict[str, Op] = {}
_MOST = 4096


class Function:
    """A function with its arguments taken apart: which leaves are tensors, and how outputs are put together again.

    Args:
        fn: the function.
        args: its arguments.
        kwargs: its keyword arguments.
        has_aux: it returns ``(outputs, more)``, and `more` is not differentiated.

    Attributes:
        tensors: the tensors among the arguments.
        places: their positions among the leaves of the arguments.
        results: the outputs without their tensors, once the function ran.
        along: the same of `more`.
    """

    results: tree.Skeleton
    along: tree.Skeleton

    def __init__(self, fn: Callable, args: tuple, kwargs: dict, has_aux: bool = False) -> None:
        self.fn = fn
        self.has_aux = has_aux
        self._call = Call(args, kwargs)
        self.places = self._call.places
        self.tensors = [refresh_tensor(t) for t in self._call.tensors]

    def on_arrays(self, arrays) -> tuple[list, list]:
        """Run the function on arrays in the place of its tensors; return those of the outputs and of the rest."""
        args, kwargs = self._call.rebuilt(
            [_wrap_tracer(t, array) for t, array in zip(self.tensors, arrays, strict=True)]
        )
        result, aux = self.fn(*args, **kwargs), ()
        if self.has_aux:
            if not isinstance(result, tuple) or len(result) != 2:
                raise OpTypeError(
                    "a transform with has_aux=True",
                    f"a function that returns {type(result).__name__}",
                    "the function returns a pair: outputs, and auxiliary values",
                    "return output, aux",
                )
            result, aux = result
        found, self.results = tree.split_tensors(result)
        more, self.along = tree.split_tensors(aux)
        return [logical_value(t) for t in found], [logical_value(t) for t in more]

    def forget_arguments(self) -> None:
        """Let go of the arguments: a program that is kept needs only the results."""
        self.tensors, self._call = [], None


def _wrap_tracer(like: Tensor, array) -> Tensor:
    made = wrap_any(array, as_traced(like.layout, array.ndim))
    if is_per_process(like):
        note_per_process(made)
    return made


@hide_mesh
def run(operation: str, body: Callable[[list], list], tensors: list[Tensor], writes: bool = False) -> list[Tensor]:
    """Run a function of arrays as one op on tensors.

    Args:
        operation: the user's request, for messages.
        body: a function from a list of arrays to a list of arrays, such as `Function.on_arrays` under ``jax.vmap``.
        tensors: the tensors that it is run on.
        writes: allow the function to write to tensors that live outside it; else that is an error.
    """
    made = Trace(operation, body, tensors, writes)
    return made.run(tensors)


class Trace:
    """One traced call of `run`; can be run again on tensors of the same kinds.

    Args:
        operation: the user's request, for messages.
        body: the function of arrays.
        tensors: the tensors that it is run on.
        writes: allow it to write to tensors that live outside it.
        kept: collects the tensors that it stores elsewhere; None leaves them as they are.
        owned: the tensors of the modules, which it may give new values.
        last: it is not traced again for tensors that it keeps.

    Attributes:
        op: the program as an op.
        written: the tensors that it writes.
        left: the tensors that every run stores.
        unsettled: the program as text, if runs store values of their own which a further call may find.

    Raises:
        Recaptured: tensors that it keeps have values now, and it finds them when it is traced again.
    """

    unsettled: str | None = None

    def __init__(
        self,
        operation: str,
        body: Callable[[list], list],
        tensors: list[Tensor],
        writes: bool = False,
        kept: EscapedTensors | None = None,
        owned: Sequence[Tensor] = (),
        last: bool = False,
    ) -> None:
        self.written: list[Tensor] = []
        self.left: list[Output] = []
        stored: list[Tensor] = []

        def keeping(arrays: list) -> list:
            with kept.watching():
                outs = body(arrays)
                kept.rewrite(owned)
            stored[:] = [t for t in kept.left() if belongs_to_trace(t, jax_core.trace_ctx.trace)]
            self._count = len(outs)
            return outs + [logical_value(t) for t in stored]

        def retrace() -> None:
            if stored:
                kept.restore()
                kept.undo(stored)

        traced = Traced(
            body if kept is None else keeping,
            [jax.ShapeDtypeStruct((), np.uint32)] * 2,
            lambda first, second: jax.random.wrap_key_data(jnp.stack([first, second])),
            [example(t) for t in tensors],
            check=lambda outside: outside.check_storage(operation) if writes else outside.check(operation),
            captured=_Closure(),
            more=(lambda outside: self._writes(operation, outside)) if writes else None,
            again=None if kept is None else retrace,
        )
        self.is_random, self._captured = traced.is_random, traced.captured
        if stored:
            written = set(map(id, self.written))
            inputs = [None] * (2 + len(tensors)) + [None if id(t) in written else t for t in self._captured]
            place = common_placement((*tensors, *self._captured))
            traced.closed, self.left = settle_escaped(kept, stored, traced.closed, self._count, inputs, place, last)
            if any(output.constant is None for output in self.left):
                self.unsettled = text_of(traced.closed)
        closed = inline_calls(traced.closed)
        self._consts = list(closed.consts)
        self.op = _op(closed, operation)

    def _writes(self, operation: str, outside: OutsideWrites) -> list:
        """Return the new values of the tensors that were written, and note which they are."""
        self.written, arrays = [], []
        for x, saved in outside.written_tensors():
            if x.grad is not saved.grad:
                raise OpError(
                    operation,
                    f"it writes the grad of a tensor {x.dtype.name}{list(x.shape)}",
                    "a compiled function returns its results; backward() and optimizers run outside",
                    "sbpjax.compile(step, state=(model, optimizer)) compiles whole steps",
                )
            if payload(x) is not saved.array:
                self.written.append(x)
                arrays.append(logical_value(x))
        return arrays

    def run(self, tensors: list[Tensor]) -> list[Tensor]:
        """Run the program, write its state outputs, and return the rest."""
        words = _next_key_data() if self.is_random else (0, 0)
        key = [wrap_any(jnp.asarray(w, np.uint32)) for w in words]
        place = next((t.layout.placement for t in (*tensors, *self._captured) if t.layout is not None), None)
        consts = [_constant(c, place) for c in self._consts]
        captured = self._captured if place is None else [_to_placement(place, t) for t in self._captured]
        inputs = (*consts, *key, *tensors, *captured)
        pins = None
        count = len(self.written)
        if count and any(t.layout is not None and t.layout.shape is not None for t in self.written):
            pins = [None if t.layout is None else t.layout.sbp for t in self.written]
        outs = dispatch.run(self.op, inputs, None if pins is None else (*[None] * (self.op.outs - count), *pins))
        outs = list(outs) if isinstance(outs, tuple) else [outs]
        rest, new = (outs[:-count], outs[-count:]) if count else (outs, [])
        for t, value in zip(self.written, new, strict=True):
            put_from(t, value)
        if self.left:
            stored = iter(rest[self._count :])
            for output in self.left:
                output.store(next(stored) if output.constant is None else output.constant)
            rest = rest[: self._count]
        return rest


def _to_placement(place, t: Tensor) -> Tensor:
    """Return a captured tensor where the op runs: a local one is read whole, by a `to_global` in the function."""
    return t if t.layout is not None or not t.ndim else t.to_global(place, (broadcast,) * len(place.hierarchy))


def _constant(value, placement) -> Tensor:
    """Return a constant of a program as an input of its op, on the placement of the others."""
    if isinstance(value, Tensor):
        return value
    array = jnp.asarray(value)
    if placement is None or not array.ndim or isinstance(array, Tracer):
        return wrap_any(array)
    return wrap_any(*conversions.from_logical(array, placement, (broadcast,) * len(placement.hierarchy)))


def _next_key_data() -> tuple:
    data = jax.random.key_data(default_generator.key())
    return data[0], data[1]


class ProgramOp(Op):
    """An op that is a program.

    Attributes:
        is_typed: its types have the explicit axes of the program that it is traced in.
        outs: how many arrays it returns.
        program: the program; it keeps alive the objects that its text names.
    """

    __slots__ = ("is_typed", "outs", "program")


def _op(closed, operation: str) -> Op:
    """Return the one op of a program; its constants are inputs in front."""
    name = operation.partition("(")[0]
    jaxpr = closed.jaxpr
    is_typed = bool(jax.sharding.get_abstract_mesh().explicit_axes)
    text = f"{name} {is_typed} {[str(v.aval) for v in jaxpr.constvars]} {jaxpr}"
    found = _PROGRAMS.get(text)
    if found is None:
        if len(_PROGRAMS) >= _MOST:
            _PROGRAMS.clear()
        plain = jaxpr.replace(constvars=[], invars=[*jaxpr.constvars, *jaxpr.invars])
        whole = jaxpr_as_fun(ClosedJaxpr(plain, ()))

        def program(*arrays):
            return tuple(whole(*[jnp.asarray(a, v.aval.dtype) for a, v in zip(arrays, plain.invars, strict=True)]))

        program.__name__ = name
        found = _PROGRAMS[text] = ProgramOp(program)
        found.outs, found.program, found.is_typed = len(jaxpr.outvars), plain, is_typed
    return found


class _Closure(Captured):
    """Tensors read from outside: concrete ones, and those of an enclosing trace that are on the tape."""

    def __init__(self) -> None:
        super().__init__()
        self._outer = _active_traces()

    @contextlib.contextmanager
    def collecting(self, tracers):
        """Answer `mode.capture` and `mode.closure` within the block."""
        with super().collecting(tracers):
            before, mode.closure = mode.closure, self._payload_or_capture
            try:
                yield
            finally:
                mode.closure = before

    def _payload_or_capture(self, tensor: Tensor):
        if not tensor.requires_grad or payload(tensor)._trace not in self._outer:
            return payload(tensor)
        return self._capture(tensor)


def _active_traces() -> list:
    """Return the traces that are running now, innermost first."""
    found, trace = [], jax_core.trace_ctx.trace
    while trace is not None:
        found.append(trace)
        trace = getattr(trace, "parent_trace", None)
    return found
