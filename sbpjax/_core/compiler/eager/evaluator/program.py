"""Program of NumPy calls for a jaxpr.

The equations of inner calls are inlined, literals become arrays, and each equation a function with its parameters
bound. An array is dropped after its last use, so the memory is that of the live values.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from sbpjax._core.jax_private import ClosedJaxpr, DropVar, JaxprEqn, Literal, is_symbolic_dim
from sbpjax._core.ops.own_primitives import LOWERED
from sbpjax._core.programs.primitives import CALLS

from . import indexing, moves, products, random_bits, reductions  # noqa: F401  they register their rules
from .pointwise import RULES

_STEP_NS = 5e3  # of an equation, and of a result
# A random number has the same bits in each layout, and these functions of NumPy's are other than XLA's by a rounding.
_NOT_OF_RANDOM_NUMBERS = frozenset(("erf_inv", "log", "log1p", "cos", "sin"))
_EQUATIONS = {"conv_general_dilated": 50, "random_bits": 150}  # that take as long to compile as one of these


class _Builder:
    """Lists the steps of a jaxpr; the values are in numbered slots."""

    def __init__(self, sizes: dict[str, int]) -> None:
        self.sizes = sizes
        self.slots: list[Any] = []  # constants; None for computed values
        self.steps: list[tuple[Callable, tuple[int, ...], tuple[int, ...] | int]] = []
        self.cost_ns, self.equations = 0.0, 0
        self.names: set[str] = set()

    def slot(self, value: Any = None) -> int:
        self.slots.append(value)
        return len(self.slots) - 1

    def add(self, jaxpr: Any, consts: Sequence, inputs: Sequence[int]) -> list[int] | None:
        """Add a jaxpr's steps and return the slots of its outputs; None if a primitive has no rule."""
        where = dict(zip(jaxpr.invars, inputs, strict=True))
        for var, const in zip(jaxpr.constvars, consts, strict=True):
            where[var] = self.slot(np.asarray(const))

        def read(var: Any) -> int:
            return self.slot(np.asarray(var.val, var.aval.dtype)) if isinstance(var, Literal) else where[var]

        for eqn in jaxpr.eqns:
            name, reads = eqn.primitive.name, [read(v) for v in eqn.invars]
            if name in CALLS or name in LOWERED:
                inner = eqn.params[CALLS[name]] if name in CALLS else _lowered(eqn, self.sizes)
                closed = hasattr(inner, "consts")
                outs = self.add(inner.jaxpr if closed else inner, inner.consts if closed else (), reads)
                if outs is None:
                    return None
                where |= zip(eqn.outvars, outs, strict=True)
                continue
            if name == "dim_as_value":
                where[eqn.outvars[0]] = self.slot(
                    np.asarray(bind(eqn.params["dim"], self.sizes), eqn.outvars[0].aval.dtype)
                )
                continue
            rule = RULES.get(name)
            if rule is None or eqn.effects:
                return None
            outs = [-1 if isinstance(v, DropVar) else self.slot() for v in eqn.outvars]
            where |= zip(eqn.outvars, outs, strict=True)
            params = {k: bind(v, self.sizes) for k, v in eqn.params.items()} if self.sizes else eqn.params
            step = functools.partial(rule, **params) if params else rule
            self.cost_ns += cost_of(eqn, self.sizes)
            self.names.add(name)
            self.equations += _EQUATIONS.get(name, 1)
            self.steps.append((step, tuple(reads), tuple(outs) if eqn.primitive.multiple_results else outs[0]))
        return [read(v) for v in jaxpr.outvars]


def _lowered(eqn: JaxprEqn, sizes: dict[str, int]) -> ClosedJaxpr:
    """Return the jaxpr of one of our own primitives, in its form for other platforms, which has one convolution."""
    structs = [jax.ShapeDtypeStruct(bind(v.aval.shape, sizes), v.aval.dtype) for v in eqn.invars]
    params = {name: bind(value, sizes) for name, value in eqn.params.items()}
    return jax.make_jaxpr(functools.partial(LOWERED[eqn.primitive.name], platform="", **params))(*structs)


def bind(value: Any, sizes: dict[str, int]) -> Any:
    """Return a parameter with sizes in place of symbolic dims."""
    if type(value) in (tuple, list):
        return type(value)([bind(x, sizes) for x in value])
    return int(value._evaluate(sizes)) if is_symbolic_dim(value) else value


# Nanoseconds an element of the largest operand or result, where it is not about one.
_VIEWS = frozenset("reshape squeeze transpose rev broadcast_in_dim slice split iota stop_gradient copy name".split())
_SLOW_NS = {
    "sort": 100, "top_k": 100, "cumsum": 4, "cumprod": 4, "cummax": 4, "cummin": 4, "erf_inv": 30,
    "lgamma": 30, "pow": 10, "random_bits": 20, "gather": 10, "erf": 20, "erfc": 20, "log1p": 20,
    "logistic": 8, "tanh": 4, "exp": 3, "select_n": 2,
}  # fmt: skip


def cost_of(eqn: JaxprEqn, sizes: dict[str, int]) -> float:
    """Return the nanoseconds that NumPy takes for an equation, roughly: the same on every machine."""
    name = eqn.primitive.name
    if name in _VIEWS:
        return _STEP_NS
    operands = [math.prod(bind(v.aval.shape, sizes)) for v in eqn.invars]
    elements = max(operands + [math.prod(bind(v.aval.shape, sizes)) for v in eqn.outvars])
    if name == "dot_general":
        (sums, _), _ = eqn.params["dimension_numbers"]
        shape = bind(eqn.invars[0].aval.shape, sizes)
        products = math.prod(bind(eqn.outvars[0].aval.shape, sizes)) * math.prod([shape[d] for d in sums])
        return _STEP_NS + elements + products * (0.025 if eqn.outvars[0].aval.dtype.kind == "f" else 1)
    if name == "conv_general_dilated":
        specs, filters = eqn.params["dimension_numbers"], bind(eqn.invars[1].aval.shape, sizes)
        outputs = math.prod(bind(eqn.outvars[0].aval.shape, sizes))
        window = math.prod(filters) // (filters[specs.rhs_spec[0]] or 1)
        columns = outputs * window * _groups(eqn) // (filters[specs.rhs_spec[0]] or 1)
        return _STEP_NS + 2 * columns + 0.025 * outputs * window
    if name.startswith("reduce_window"):
        elements *= math.prod(eqn.params["window_dimensions"])
    elif name.startswith("scatter"):
        elements += 10 * operands[2]
    return _STEP_NS + elements * _SLOW_NS.get(name, 1)


def _groups(eqn: JaxprEqn) -> int:
    return eqn.params["feature_group_count"] * eqn.params["batch_group_count"]


def program_of(closed: ClosedJaxpr, sizes: dict[str, int]) -> Any:
    """Return a function of NumPy arrays that computes a jaxpr and returns a list; None if a primitive has no rule.

    Its attributes are ``equations``, a count, and ``cost_ns``, the cost of a call, see `cost_of`.

    Args:
        closed: the jaxpr.
        sizes: the values of its symbolic dims, by name.
    """
    builder = _Builder(sizes)
    inputs = [builder.slot() for _ in closed.jaxpr.invars]
    outputs = builder.add(closed.jaxpr, closed.consts, inputs)
    if outputs is None or any(jax.dtypes.issubdtype(v.aval.dtype, jax.dtypes.extended) for v in closed.jaxpr.outvars):
        return None
    if "random_bits" in builder.names and not _NOT_OF_RANDOM_NUMBERS.isdisjoint(builder.names):
        return None
    # A nanosecond an element of a result, which is copied to a buffer of JAX.
    builder.cost_ns += sum(_STEP_NS + math.prod(bind(v.aval.shape, sizes)) for v in closed.jaxpr.outvars)
    slots, dtypes = builder.slots, [v.aval.dtype for v in closed.jaxpr.outvars]
    steps = _with_releases(builder.steps, outputs)
    count = len(inputs)

    def run(*arrays: np.ndarray) -> list[np.ndarray]:
        env = slots.copy()
        env[:count] = arrays
        with np.errstate(all="ignore"):
            for function, reads, writes, last in steps:
                result = function(*[env[i] for i in reads])
                if writes.__class__ is int:
                    env[writes] = result
                else:
                    for slot, value in zip(writes, result, strict=True):
                        env[slot] = value
                for i in last:
                    env[i] = None
        return [_copy_if_shared(np.asarray(env[i], dtype), arrays) for i, dtype in zip(outputs, dtypes, strict=True)]

    run.cost_ns, run.equations = builder.cost_ns, builder.equations  # type: ignore[attr-defined]
    return run


def _with_releases(steps: Sequence, outputs: Sequence[int]) -> list:
    """Return the steps, each with the slots that are read for the last time there."""
    seen, found = set(outputs), []
    for function, reads, writes in reversed(steps):
        last = tuple({i for i in reads if i not in seen})
        seen |= set(reads)
        found.append((function, reads, writes, last))
    return found[::-1]


def _copy_if_shared(out: np.ndarray, inputs: Sequence[np.ndarray]) -> np.ndarray:
    """Return an array that shares no memory with an input, whose buffer may be donated later."""
    if out.flags.owndata or not any(np.may_share_memory(out, x) for x in inputs):
        return out
    return out.copy()
