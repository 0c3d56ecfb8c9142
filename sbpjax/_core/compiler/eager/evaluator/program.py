"""Program of NumPy calls for a jaxpr.

The equations of inner calls are inlined, literals become arrays, and each equation a function with its parameters
bound. An array is dropped after its last use, so the memory is that of the live values.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from sbpjax._core.jax_private import ClosedJaxpr, JaxprEqn, Literal, is_symbolic_dim
from sbpjax._core.ops.own_primitives import LOWERED
from sbpjax._core.programs.primitives import CALLS

from . import moves, products, random_bits, reductions  # noqa: F401  they register their rules
from .pointwise import POINTWISE, RULES, plain_of

_STEP_NS = 5e3  # of an equation, and of a result
# A random number has the same bits in each layout, and these functions of NumPy's are other than XLA's by a rounding.
_NOT_OF_RANDOM_NUMBERS = frozenset(("erf_inv", "log", "log1p", "cos", "sin"))
_SAME = frozenset(("stop_gradient", "copy", "name"))
_MOST_CONSTANT = 1 << 14  # elements of a result that is computed once
_EQUATIONS = {"conv_general_dilated": 50, "random_bits": 150}  # that take as long to compile as one of these


class _Builder:
    """Lists the steps of a jaxpr; the values are in numbered slots.

    Equal steps are made once, those that read constants alone are computed here, and those that change nothing are
    left out. A broadcast value is *thin*, with dims of size 1, until a step reads it that is not pointwise.
    """

    def __init__(self, sizes: dict[str, int]) -> None:
        self.sizes = sizes
        self.slots: list[Any] = []  # constants; None for computed values
        self.shapes: list[tuple[int, ...]] = []  # of the values as they are, thin or not
        self.steps: list[tuple[Callable, tuple[int, ...], tuple[int, ...] | int]] = []
        self.cost_ns, self.equations = 0.0, 0
        self.names: set[str] = set()
        self.is_elementwise = True  # whether the program serves arrays of any one shape
        self._made: dict[Any, list[int]] = {}

    def slot(self, shape: tuple[int, ...], value: Any = None) -> int:
        self.slots.append(value)
        self.shapes.append(shape)
        return len(self.slots) - 1

    def shape_of(self, var: Any) -> tuple[int, ...]:
        return bind(var.aval.shape, self.sizes) if self.sizes else var.aval.shape

    def add(self, jaxpr: Any, consts: Sequence, inputs: Sequence[int]) -> list[int] | None:
        """Add a jaxpr's steps and return the slots of its outputs; None if a primitive has no rule."""
        where = dict(zip(jaxpr.invars, inputs, strict=True))
        self.is_elementwise &= not any(var.aval.shape for var in jaxpr.constvars)
        for var, const in zip(jaxpr.constvars, consts, strict=True):
            where[var] = self.slot(self.shape_of(var), np.asarray(const))
        for eqn in jaxpr.eqns:
            name, reads = eqn.primitive.name, [self._read(v, where) for v in eqn.invars]
            if name in CALLS or name in LOWERED:
                inner = eqn.params[CALLS[name]] if name in CALLS else _lower_primitive(eqn, self.sizes)
                closed = hasattr(inner, "consts")
                outs = self.add(inner.jaxpr if closed else inner, inner.consts if closed else (), reads)
            elif name == "dim_as_value":
                outs = [self._number(bind(eqn.params["dim"], self.sizes), eqn.outvars[0].aval.dtype)]
            else:
                outs = self._add_equation(eqn, reads)
            if outs is None:
                return None
            where |= zip(eqn.outvars, outs, strict=True)
        return [self._read(v, where) for v in jaxpr.outvars]

    def _read(self, var: Any, where: dict) -> int:
        return self._number(var.val, var.aval.dtype) if isinstance(var, Literal) else where[var]

    def _number(self, value: Any, dtype: Any) -> int:
        array = np.asarray(value, dtype)
        key = array.dtype, array.tobytes(), array.shape
        if key not in self._made:
            self._made[key] = [self.slot(array.shape, array)]
        return self._made[key][0]

    def whole(self, slot: int, shape: tuple[int, ...]) -> int:
        """Return the slot of a value in its full shape."""
        if self.shapes[slot] == shape:
            return slot
        self.is_elementwise = False
        return self._call(functools.partial(np.broadcast_to, shape=shape), ("whole", shape), (slot,), [shape])[0]

    def _add_equation(self, eqn: JaxprEqn, reads: Sequence[int]) -> Sequence[int] | None:
        name, out = eqn.primitive.name, eqn.outvars[0].aval
        rule = RULES.get(name)
        if rule is None or eqn.effects:
            return None
        self.names.add(name)
        params = {k: bind(v, self.sizes) for k, v in eqn.params.items()} if self.sizes else eqn.params
        if name in _SAME or (name == "convert_element_type" and eqn.invars[0].aval.dtype == out.dtype):
            return reads
        if name in POINTWISE:
            shapes = [_broadcast_shape([self.shapes[i] for i in reads])]
        else:
            reads = [self.whole(i, self.shape_of(v)) for i, v in zip(reads, eqn.invars, strict=True)]
            shapes = [self.shape_of(v) for v in eqn.outvars]
        if name == "broadcast_in_dim":
            shapes = [_thin_shape(self.shapes[reads[0]], **params)]
            name, rule, params = "reshape", RULES["reshape"], {"new_sizes": shapes[0]}
        if name == "reshape" and shapes[0] == self.shapes[reads[0]] and params.get("dimensions") is None:
            return reads
        plain = plain_of(rule, eqn.invars[0].aval.dtype) if name in POINTWISE else None
        step = plain or (functools.partial(rule, **params) if params else rule)
        count = len(self.steps)
        outs = self._call(step, (name, *params.items()), reads, shapes, eqn.primitive.multiple_results)
        if len(self.steps) > count:
            self.cost_ns += cost_of(eqn, self.sizes)
            self.equations += _EQUATIONS.get(name, 1)
        return outs

    def _call(self, step: Callable, key: Any, reads: Sequence[int], shapes: list, several: bool = False) -> list[int]:
        """Return the slots of a step's results; it may have been made before, or read constants alone."""
        reads = tuple(reads)
        key = key, reads
        try:
            made = self._made.get(key)
        except TypeError:  # a parameter that cannot be hashed
            key, made = object(), None
        if made is None:
            values = None
            if all(self.slots[i] is not None for i in reads) and sum(map(math.prod, shapes)) <= _MOST_CONSTANT:
                # An error of any class is raised again where the step runs.
                with contextlib.suppress(Exception), np.errstate(all="ignore"):
                    values = step(*[self.slots[i] for i in reads])
            if values is not None:
                made = [self.slot(s, np.asarray(v)) for s, v in zip(shapes, values if several else [values])]
            else:
                made = [self.slot(shape) for shape in shapes]
                self.steps.append((step, reads, tuple(made) if several else made[0]))
            self._made[key] = made
        return made


def _thin_shape(old: tuple[int, ...], shape: Sequence[int], broadcast_dimensions: Sequence[int], **_: Any) -> tuple:
    """Return the shape of a value that NumPy broadcasts as ``broadcast_in_dim`` would; () stays."""
    sizes = [1] * len(shape) if old else []
    for size, dim in zip(old, broadcast_dimensions, strict=True):
        sizes[dim] = size
    return tuple(sizes)


def _broadcast_shape(shapes: list[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the shape of a pointwise result of shapes of one length, or of none."""
    if all(shape == shapes[0] for shape in shapes):
        return shapes[0]
    return tuple([0 if 0 in dims else max(dims) for dims in zip(*filter(None, shapes), strict=True)])


def _lower_primitive(eqn: JaxprEqn, sizes: dict[str, int]) -> ClosedJaxpr:
    """Return the jaxpr of one of our own primitives, in its form for other platforms, which has one convolution."""
    structs = [jax.ShapeDtypeStruct(bind(v.aval.shape, sizes), v.aval.dtype) for v in eqn.invars]
    params = {name: bind(value, sizes) for name, value in eqn.params.items()}
    return jax.make_jaxpr(functools.partial(LOWERED[eqn.primitive.name], platform="", **params))(*structs)


def bind(value: Any, sizes: dict) -> Any:
    """Return a parameter with sizes in place of symbolic dims; the value of each is added to the sizes."""
    kind = value.__class__
    if kind is int or not sizes:
        return value
    if kind is tuple or kind is list:
        return kind([x if x.__class__ is int else bind(x, sizes) for x in value])
    if not is_symbolic_dim(value):
        return value
    found = sizes.get(value)
    if found is None:
        found = sizes[value] = int(value._evaluate(sizes))
    return found


# Nanoseconds an element of the largest operand or result, where it is not about one.
_VIEWS = frozenset("reshape squeeze transpose rev broadcast_in_dim slice split iota stop_gradient copy name".split())
_SLOW_NS = {
    "sort": 100, "top_k": 100, "cumsum": 4, "cumprod": 4, "cummax": 4, "cummin": 4, "erf_inv": 30,
    "lgamma": 30, "pow": 10, "random_bits": 20, "gather": 10, "erf": 6, "erfc": 20, "log1p": 20,
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

    Its attributes are ``equations``, a count, ``cost_ns``, the cost of a call, see `cost_of`, and ``is_elementwise``,
    whether it computes the same of arrays of another shape.

    Args:
        closed: the jaxpr.
        sizes: the values of its symbolic dims, by name.
    """
    builder = _Builder(sizes)
    inputs = [builder.slot(builder.shape_of(v)) for v in closed.jaxpr.invars]
    outputs = builder.add(closed.jaxpr, closed.consts, inputs)
    if outputs is None or any(jax.dtypes.issubdtype(v.aval.dtype, jax.dtypes.extended) for v in closed.jaxpr.outvars):
        return None
    if "random_bits" in builder.names and not _NOT_OF_RANDOM_NUMBERS.isdisjoint(builder.names):
        return None
    wholes = [builder.shape_of(v) for v in closed.jaxpr.outvars]
    outputs = [builder.whole(slot, shape) for slot, shape in zip(outputs, wholes, strict=True)]
    # A nanosecond an element of a result, which is copied to a buffer of JAX.
    builder.cost_ns += sum(_STEP_NS + math.prod(shape) for shape in wholes)
    slots, steps = builder.slots, _with_releases(builder.steps, outputs)
    results = [(i, v.aval.dtype, slots[i] is not None) for i, v in zip(outputs, closed.jaxpr.outvars, strict=True)]
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
        return [_unshare(np.asarray(env[i], dtype), arrays, constant) for i, dtype, constant in results]

    run.cost_ns, run.equations = builder.cost_ns, builder.equations  # type: ignore[attr-defined]
    run.is_elementwise = builder.is_elementwise and builder.names <= POINTWISE | {"broadcast_in_dim"}  # type: ignore[attr-defined]
    return run


def _with_releases(steps: Sequence, outputs: Sequence[int]) -> list:
    """Return the steps whose results are read, each with the slots that are read for the last time there."""
    seen, found = set(outputs), []
    for function, reads, writes in reversed(steps):
        if seen.isdisjoint((writes,) if writes.__class__ is int else writes):
            continue
        last = tuple({i for i in reads if i not in seen})
        seen |= set(reads)
        found.append((function, reads, writes, last))
    return found[::-1]


def _unshare(out: np.ndarray, inputs: Sequence[np.ndarray], constant: bool) -> np.ndarray:
    """Return an array that shares no memory with an input, whose buffer may be donated later, or a constant."""
    if not constant and (out.flags.owndata or not any(np.may_share_memory(out, x) for x in inputs)):
        return out
    return out.copy()
