"""`wrap_jax`: a function of JAX arrays as an op on tensors, with gradient, local, global and traced.

The planner's rules for JAX's primitives hold inside, so most functions need nothing more. A function that it cannot
look into (a Pallas kernel, a callback) runs on whole arrays on every rank, unless the user gives rules to divide it:

    scaled = sbpjax.wrap_jax(kernel, sbp_rule=["S0, B -> S0", "S1, S0 -> S1"])

Each line is a signature on one mesh axis: the layout of each input array, then of each output. The function is then
called with the blocks of one rank. Strategies over several axes are products of these.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.interpreters import ad, batching, mlir

from sbpjax._core.jax_private import Primitive
from sbpjax._core.programs.rules import Strategy
from sbpjax._core.runtime.user_line import is_users_file
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.dispatch import dispatch
from sbpjax._core.tensor.dispatch.op import Op
from sbpjax._core.tensor.dispatch.traced import TracedLayout
from sbpjax._core.tensor.handle.tensor import wrap_any
from sbpjax._core.tensor.storage.payload import payload, refresh_tensor
from sbpjax.errors import DataDependentError, OpTypeError, OpValueError, SbpError, SbpjaxError, UnknownNameError
from sbpjax.sbp import algebra

ruled_call_p = Primitive("ruled_call")
ruled_call_p.multiple_results = True


class Rule:
    """How one function may be divided.

    Attributes:
        call: the function of arrays, which returns a tuple.
        strategies: its strategies on one mesh axis.
        name: its name in plans.
    """

    def __init__(self, call: Callable, strategies: tuple[Strategy, ...], name: str) -> None:
        self.call = call
        self.strategies = strategies
        self.name = name

    def __repr__(self) -> str:  # part of the key under which plans are filed
        return f"Rule({self.name!r}, {self.strategies!r})"


def parse_rule(lines: Sequence[str]) -> tuple[Strategy, ...]:
    """Return the signatures of a rule."""
    found = []
    for line in (lines,) if isinstance(lines, str) else lines:
        left, arrow, right = line.partition("->")
        if not arrow or not left.strip() or not right.strip():
            raise SbpError(
                f"wrap_jax(sbp_rule={lines!r})",
                repr(line),
                "a signature names an sbp per input, '->', and an sbp per output",
                'sbp_rule=["S0, B -> S0"]',
            )
        ins, outs = (tuple(algebra.parse(s.strip(), (1,))[0] for s in side.split(",")) for side in (left, right))
        rigid = [tuple(i for i, code in enumerate(codes) if code >= 0) for codes in (ins, outs)]
        found.append(Strategy(ins, outs, rigid_ins=rigid[0], rigid_outs=rigid[1]))
    return tuple(found)


@ruled_call_p.def_impl
def _impl(*arrays, sbp_rule: Rule):
    return sbp_rule.call(*arrays)


@ruled_call_p.def_abstract_eval
def _abstract(*avals, sbp_rule: Rule):
    structs = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in avals]
    return [jax.core.ShapedArray(o.shape, o.dtype) for o in jax.eval_shape(sbp_rule.call, *structs)]


def _jvp(primals, tangents, *, sbp_rule: Rule):
    outs = ruled_call_p.bind(*primals, sbp_rule=sbp_rule)
    tangents = [ad.instantiate_zeros(t) for t in tangents]
    _, pushed = jax.jvp(sbp_rule.call, primals, tuple(tangents))
    return outs, list(pushed)


def _batch_call(arrays, dims, *, sbp_rule: Rule):
    outs = jax.vmap(sbp_rule.call, in_axes=tuple(dims))(*arrays)
    return list(outs), [0] * len(outs)


ad.primitive_jvps[ruled_call_p] = _jvp
batching.primitive_batchers[ruled_call_p] = _batch_call
mlir.register_lowering(
    ruled_call_p,
    mlir.lower_fun(lambda *arrays, sbp_rule: list(sbp_rule.call(*arrays)), multiple_results=True),
)


class Wrapped:
    """A function of JAX arrays that takes and returns tensors; see `wrap_jax`.

    Attributes:
        check: which tensors must not be written between the call and its backward: ``"inputs"`` or ``"none"``.
    """

    check = "inputs"

    def __init__(
        self, fn: Callable, strategies: tuple[Strategy, ...] | None, backward, backward_strategies, name: str
    ) -> None:
        self._fn = fn
        self._strategies = strategies
        self._backward = backward
        self._backward_strategies = backward_strategies
        self.__name__ = name
        self.__doc__ = getattr(fn, "__doc__", None)
        self._ops: dict = {}

    def __call__(self, *args, **kwargs):
        """Run the function on tensors, in any nesting in which it takes arrays."""
        leaves, structure = jax.tree_util.tree_flatten((args, kwargs))
        places = [i for i, x in enumerate(leaves) if isinstance(x, (Tensor, jax.Array, np.ndarray))]
        tensors = [_tensor(leaves[i]) for i in places]
        rest = tuple([(i, x) for i, x in enumerate(leaves) if i not in set(places)])
        avals = tuple([_struct(t) for t in tensors])
        try:
            key = structure, tuple([(i, x.__class__, x) for i, x in rest]), avals
            found = self._ops.get(key)
        except TypeError:
            raise OpTypeError(
                f"{self.__name__}(...)",
                f"arguments {[type(x).__name__ for _, x in rest]}, of which one has no hash",
                "a value that is no tensor is static, and static arguments are hashable",
                "pass tensors, numbers, strings or None",
            ) from None
        if found is None:
            found = self._ops[key] = self._make_op(structure, places, rest, avals)
        op, out_structure = found
        outs = dispatch.run(op, tuple(tensors))
        return jax.tree_util.tree_unflatten(out_structure, outs if isinstance(outs, tuple) else (outs,))

    def _make_op(self, structure, places: list, rest: tuple, avals: tuple) -> tuple[Op, Any]:
        held: dict = {}

        def flat(*arrays):
            leaves: list = [None] * (len(places) + len(rest))
            for i, value in (*zip(places, arrays, strict=True), *rest):
                leaves[i] = value
            args, kwargs = jax.tree_util.tree_unflatten(structure, leaves)
            outs, held["structure"] = jax.tree_util.tree_flatten(self._fn(*args, **kwargs))
            return tuple([jnp.asarray(o) for o in outs])

        flat.__name__ = self.__name__
        call = (
            flat if self._strategies is None else self._apply_rules(flat, self._strategies, self.__name__, len(avals))
        )
        if self._backward is not None:
            call = self._with_backward(call)
        try:
            jax.eval_shape(flat, *[jax.ShapeDtypeStruct(*a) for a in avals])
        except (TypeError, ValueError, AttributeError) as error:
            converted = _convert_error(error, self.__name__, avals)
            if converted is None:
                raise
            raise converted from error
        op = Op(call, name=self.__name__)
        op.check = self.check
        return op, held["structure"]

    def _apply_rules(self, flat: Callable, strategies: tuple[Strategy, ...], name: str, count: int) -> Callable:
        for strategy in strategies:
            if len(strategy.ins) != count:
                raise SbpError(
                    f"{name}(...)",
                    f"{count} arrays, and a strategy of {len(strategy.ins)} inputs",
                    "a signature has an sbp per input array",
                    "correct sbp_rule=",
                )
        rule = Rule(flat, strategies, name)

        def call(*arrays):
            return tuple(ruled_call_p.bind(*arrays, sbp_rule=rule))

        call.__name__ = name
        return call

    def _with_backward(self, call: Callable) -> Callable:
        """Give the function the user's own backward."""

        def back(*arrays):
            outs = self._backward(*arrays)
            return tuple(outs) if isinstance(outs, (tuple, list)) else (outs,)

        @jax.custom_vjp
        def with_backward(*arrays):
            return call(*arrays)

        def forward(*arrays):
            return call(*arrays), arrays

        def backward(arrays, cotangents):
            run = back
            if self._backward_strategies is not None:
                name = f"{self.__name__}_backward"
                run = self._apply_rules(back, self._backward_strategies, name, len(arrays) + len(cotangents))
            return tuple(run(*arrays, *cotangents))

        with_backward.defvjp(forward, backward)
        with_backward.__name__ = self.__name__
        return with_backward


def _convert_error(error: Exception, name: str, avals: tuple) -> SbpjaxError | None:
    """Return JAX's error about a function's arrays in four parts; None for an error that is the function's own."""
    arrays = ", ".join(f"{jnp.dtype(dtype).name}{list(shape)}" for shape, dtype in avals)
    operation, message = f"{name}({arrays}), a function of JAX arrays", str(error).partition("\n")[0]
    if isinstance(error, jax.errors.ConcretizationTypeError):
        rule = "the function is traced: which of its branches runs must not depend on values of arrays"
        return DataDependentError(
            operation, message, rule, "jnp.where(condition, a, b), jax.lax.cond, jax.lax.while_loop"
        )
    if isinstance(error, AttributeError):
        if not isinstance(error.obj, Tracer):
            return None
        rule = "the function is given JAX arrays, which have no methods of tensors"
        fix = f"write it with jax.numpy, jax.nn and jax.lax; if it is one of tensors, call {name} as it is"
        return UnknownNameError(operation, message, rule, fix, name=error.name, obj=error.obj)
    trace = traceback.extract_tb(error.__traceback__)
    if is_users_file(trace[-1].filename):
        return None
    lines = [f"{frame.filename}:{frame.lineno}" for frame in trace if is_users_file(frame.filename)]
    rule = "JAX traces the function with arrays of these shapes, and its outputs are arrays"
    fix = f"look at {lines[-1]}" if lines else "call the function with jax.numpy arrays of these shapes by itself"
    return (OpTypeError if isinstance(error, TypeError) else OpValueError)(operation, message, rule, fix)


def _tensor(x) -> Tensor:
    if isinstance(x, Tensor):
        return refresh_tensor(x)
    return wrap_any(x if isinstance(x, jax.Array) else jnp.asarray(x))


def _struct(t: Tensor) -> tuple:
    layout = t.layout
    shape = payload(t).shape if layout is None or isinstance(layout, TracedLayout) else layout.shape
    return tuple(shape), payload(t).dtype


def wrap_jax(
    fn: Callable,
    sbp_rule: str | Sequence[str] | None = None,
    *,
    backward: Callable | None = None,
    backward_rule: str | Sequence[str] | None = None,
    name: str | None = None,
) -> Wrapped:
    """Return a function of JAX arrays as an op on tensors.

    Args:
        fn: a function of arrays, nested as it likes; arguments that are no arrays are static.
        sbp_rule: how it may be divided: signatures on one mesh axis such as ``"S0, B -> S0"``. Dims that are split must
            divide evenly. None plans the primitives that it is made of.
        backward: its gradient, if JAX's own is not wanted or does not exist: takes the inputs and the cotangents of the
            outputs and returns the cotangents of the inputs.
        backward_rule: how that may be divided: one sbp per input, then per cotangent.
        name: its name in plans and messages.

    Returns:
        A function of tensors, local or global, that returns tensors in the nesting of ``fn``.

    Raises:
        SbpError: a rule is malformed, or does not fit the number of arrays.
        OpTypeError, OpValueError: at a call: JAX refuses the operations of ``fn`` on arrays of these shapes.
        DataDependentError: at a call: ``fn`` needs the value of an array.

    Example:
        >>> logsumexp = sbpjax.wrap_jax(jax.nn.logsumexp)
        >>> logsumexp(sbpjax.zeros(2))
        tensor(0.6931)
    """
    strategies = None if sbp_rule is None else parse_rule(sbp_rule)
    backward_strategies = None if backward_rule is None else parse_rule(backward_rule)
    return Wrapped(fn, strategies, backward, backward_strategies, name or getattr(fn, "__name__", "wrapped"))
