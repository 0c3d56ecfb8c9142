"""Gradient accumulation with exact loss means: divides micro-batch losses by the counts of the whole batch.

Of eight rows the first four have one target that counts, the others three. ``cross_entropy`` of each half is its own
mean, and the mean of the two is not that of the batch:

    loss = div(total, count)        count = reduce_sum(ne(target, -100)) = 1, then 3

The count depends on the inputs alone, so that of the batch, 4, is known before the first micro-batch. It takes the
place of the micro-batch's own, divided by the number of micro-batches: ``total / (4 / 2)``. The mean of such losses,
and of their gradients, is exactly the batch's, and a micro-batch without a target adds 0 instead of NaN.

Which values are such counts is read from the program. The search goes from the loss back through linear equations
(sums, casts, products and quotients with values of the inputs alone) to sums over rows; the scalars of the inputs on
the way are replaced, in forward and backward. A sum over rows counts as a mean where it is divided by the number of its
elements.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sbpjax._core.jax_private import ClosedJaxpr, Literal, Var, jaxpr_as_fun

from . import primitives as known
from .normalise import body_of, live_equations, source_line
from .row_kinds import DRAWN, STEADY, SUM, UNKNOWN, RowKinds

_MOST_STEPS = 5000  # of the way back: bounds the search for a loss that is linear in all of a large model
_PASS = known.OF_ONE_OPERAND
_GATHERED = known.REDUCTIONS - {"reduce_xor"}


def _gather_of(name: str) -> Callable[..., Any]:
    """Return the reduction over the micro-batches' results of a primitive; a product sums."""
    short = name.removeprefix("reduce_") if name in _GATHERED else "sum"
    return getattr(jnp, {"or": "any", "and": "all"}.get(short, short))


@dataclass(frozen=True)
class _Path:
    """The path from a loss back to a value.

    Attributes:
        scalars: values of the inputs by which it is multiplied ("mul"), divided ("div"), or that choose ("plain").
        divisors: numbers that it is divided by.
        sizes: the number of elements along dim 0 of each sum on the way.
    """

    scalars: tuple = ()
    divisors: tuple = ()
    sizes: tuple = ()


@dataclass
class BatchCountProgram:
    """A program of one micro-batch that takes values of the whole batch as further inputs, at the end.

    Attributes:
        closed: the program.
        unknown: why losses, or parts of them, are not parts of the batch's.
        values: ``values(*arrays)`` returns the further inputs, given the inputs of the program, those that a
            micro-batch has a part of stacked; None if there are none.
    """

    closed: ClosedJaxpr
    unknown: list[str]
    values: Callable[..., list] | None = None


def with_batch_counts(
    closed: ClosedJaxpr,
    losses: Sequence[int],
    rows: Sequence[int],
    drawn: Sequence[int],
    changing: Sequence[int],
    count: int,
) -> BatchCountProgram:
    """Return the program of a micro-batch whose losses, averaged over the micro-batches, are those of the batch.

    Args:
        closed: the program.
        losses: the outputs from which backwards start.
        rows: the inputs that hold rows of the micro-batch, along dim 0.
        drawn: the inputs that differ between micro-batches otherwise: random keys.
        changing: the inputs that are learned, or written by a micro-batch.
        count: the number of micro-batches.
    """
    search = _Search(closed, losses, rows, drawn, changing, count)
    for place in losses:
        search.walk(search.outvars[place])
    return search.replace_scalars()


class _Search:
    def __init__(self, closed, losses, rows, drawn, changing, count: int) -> None:
        jaxpr = closed.jaxpr
        self.closed, self.count = closed, count
        self.invars = list(jaxpr.invars)
        self.places = {"rows": list(rows), "drawn": list(drawn)}
        self.consts = dict(zip(jaxpr.constvars, closed.consts, strict=True))
        starts = [self.invars[i] for i in (*rows, *drawn)]
        self.varies = set(starts)  # differs between micro-batches
        self.learned = {self.invars[i] for i in changing}  # depends on more than the inputs
        self.eqns: list = []
        self.outvars = self._inline(jaxpr)
        self.maker = {v: eqn for eqn in self.eqns for v in eqn.outvars}
        kinds: dict[Any, Any] = {self.invars[i]: 0 for i in rows}
        self.kind = RowKinds(self.maker, kinds | {self.invars[i]: DRAWN for i in drawn})
        self.same = self._equal_values()
        roots = [self.outvars[i] for i in losses]
        self.before = {id(eqn) for eqn in live_equations(self.eqns, [v for v in roots if not isinstance(v, Literal)])}
        self.found: dict[Any, tuple[str, float]] = {}  # scalar → how it is used, and the factor of its term
        self.way: set[int] = set()  # equations in which scalars are replaced
        self.unknown: dict[str, None] = {}
        self.steps = 0

    def _inline(self, jaxpr) -> list:
        """Collect the equations of a program, inlining calls that compute counts and calls on values of the inputs."""
        now: dict = {}
        counted: set[str] = set()  # names of calls whose results they divided by a count
        eqns = list(reversed(jaxpr.eqns))
        while eqns:
            eqn = eqns.pop()
            if any(v in now for v in eqn.invars if not isinstance(v, Literal)):
                eqn = eqn.replace(invars=[v if isinstance(v, Literal) else now.get(v, v) for v in eqn.invars])
            inner = self._open_call(eqn, counted)
            if inner is not None:
                body: list = []
                results = body_of(inner).splice(eqn.invars, eqn.source_info, body, self.consts)
                now.update(zip(eqn.outvars, results, strict=True))
                eqns += reversed(body)
                continue
            # A barrier passes on each operand by itself.
            apart = eqn.primitive.name == "optimization_barrier"
            for of_kind in (self.varies, self.learned):
                flags = [not isinstance(v, Literal) and v in of_kind for v in eqn.invars]
                of_kind.update(v for i, v in enumerate(eqn.outvars) if (flags[i] if apart else any(flags)))
            self.eqns.append(eqn)
        return [v if isinstance(v, Literal) else now.get(v, v) for v in jaxpr.outvars]

    def _open_call(self, eqn, counted: set[str]):
        """Return the program inside a call that is to be inlined, or None.

        A block of a model that returns a loss (`sbpjax.graph.repeated_layers`) is two calls, ``Head`` and
        ``Head_backward``.
        """
        name, params = eqn.primitive.name, eqn.params
        if name not in known.CALLS or known.CALLS[name] not in params:
            return None
        inner = params[known.CALLS[name]]
        reads = [v for v in eqn.invars if not isinstance(v, Literal)]
        if not any(v in self.varies for v in reads):
            return None
        if not any(v in self.learned for v in reads):
            return inner
        if name not in known.JITS:
            return None
        called = str(params.get("name"))
        if called in counted:
            return inner
        if not any(_single(v) and jnp.issubdtype(v.aval.dtype, jnp.inexact) for v in eqn.outvars):
            return None
        if all(map(_single, eqn.outvars)) or _counts_inside(inner, self._flags(eqn)):
            counted.add(f"{called}_backward")
            return inner
        return None

    def _flags(self, eqn) -> list[bool | None]:
        """Return of every operand whether it is of the inputs alone and varies; None for one that is learned."""
        return [
            False if isinstance(v, Literal) else None if v in self.learned else v in self.varies for v in eqn.invars
        ]

    def _equal_values(self) -> dict:
        """Return for each value of the inputs alone the first variable that holds it: backwards compute some again."""
        same: dict = {}
        seen: dict = {}
        for eqn in self.eqns:
            if eqn.primitive.name == "optimization_barrier":
                pairs = zip(eqn.outvars, eqn.invars, strict=True)
                same |= {out: same.get(v, v) for out, v in pairs if self._varies_with_inputs(out)}
                continue
            if not self._varies_with_inputs(eqn.outvars[0]) or len(eqn.outvars) > 1 or eqn.effects:
                continue
            reads = tuple(
                ("literal", str(v.val), str(v.aval)) if isinstance(v, Literal) else same.get(v, v) for v in eqn.invars
            )
            try:
                first = seen.setdefault((eqn.primitive, reads, str(eqn.params)), eqn.outvars[0])
            except TypeError:
                continue
            same[eqn.outvars[0]] = first
        return same

    def _varies_with_inputs(self, v) -> bool:
        """Return whether a value differs between micro-batches, by their inputs alone."""
        return v in self.varies and v not in self.learned

    # -- the way back from a loss --------------------------------------------------------------------------------------

    def walk(self, loss) -> None:
        """Find the scalars of the inputs that a loss is multiplied or divided by."""
        open_: list[tuple[Any, _Path]] = [(loss, _Path())]
        seen = set()
        while open_:
            v, path = open_.pop()
            if isinstance(v, Literal) or v not in self.varies or v not in self.learned or (v, path) in seen:
                continue  # a value that depends on no parameter has no gradient
            seen.add((v, path))
            self.steps += 1
            eqn = self.maker.get(v)
            onward = None if eqn is None or self.steps > _MOST_STEPS else self._operands(eqn, v, path)
            if onward is None:
                self._record_path(path)
            else:
                open_ += onward

    def _operands(self, eqn, v, path: _Path) -> list | None:
        """Return the operands that a value is linear in, and the path to them; None if it is linear in none."""
        name, reads = eqn.primitive.name, eqn.invars
        if name in _PASS:
            return [(reads[0], path)]
        if name == "optimization_barrier":
            return [(reads[eqn.outvars.index(v)], path)]
        if name == "reduce_sum":
            size = reads[0].aval.size // max(v.aval.size, 1)
            sizes = (*path.sizes, size) if 0 in eqn.params["axes"] else path.sizes
            return [(reads[0], _Path(path.scalars, path.divisors, sizes))]
        if name in known.SUMS or name == "concatenate":
            return [(operand, path) for operand in reads]
        if name == "select_n":
            chosen = reads[0]
            if self._varies_with_inputs(chosen) and _single(chosen) and self._is_scalar(chosen):
                path = self._extend_path(path, eqn, [(chosen, "plain")])
            return [(case, path) for case in reads[1:]]
        if name in ("mul", "div"):
            return self._factors(eqn, path)
        programs = [p for p in eqn.params.values() if hasattr(p, "eqns") or isinstance(p, ClosedJaxpr)]
        if programs:
            flags = self._flags(eqn)
            if _single(v) and any(_counts_inside(p, flags) for p in programs):
                self._record_unknown(eqn, f"a part of the loss is computed inside {name}")
            return None
        if _single(v) and any(self._varies_with_parameters(r) and _single(r) for r in reads):
            self._record_unknown(eqn, f"a part of the loss is {name} of a value of a micro-batch")
        return None

    def _factors(self, eqn, path: _Path) -> list | None:
        left, right = eqn.invars
        divides = eqn.primitive.name == "div"
        models = [self._varies_with_parameters(side) for side in (left, right)]
        if all(models) or (divides and models[1]):
            if _single(eqn.outvars[0]):
                seen = "is divided by a value that depends on the model" if divides else "is a product of two"
                self._record_unknown(eqn, f"a part of the loss of a micro-batch {seen}")
            return None
        value, factor = (left, right) if models[0] else (right, left)
        if isinstance(factor, Literal) or factor not in self.varies:
            number = float(np.asarray(factor.val).reshape(-1)[0]) if isinstance(factor, Literal) else 0.0
            if number:
                divisors = (*path.divisors, number if divides else 1.0 / number)
                path = _Path(path.scalars, divisors, path.sizes)
            return [(value, path)]
        if factor in self.learned:
            return [(value, path)]
        scalars, way = self._scalars(factor, "div" if divides else "mul")
        if scalars is None:
            self._record_unknown(eqn, "a part of the loss depends on a value across the rows of a micro-batch")
            return [(value, path)]
        self.way.update(way)
        return [(value, self._extend_path(path, eqn, scalars))]

    def _varies_with_parameters(self, v) -> bool:
        return not isinstance(v, Literal) and v in self.varies and v in self.learned

    def _is_scalar(self, v) -> bool:
        """Return whether a value of the inputs is one of all rows, and no row's own."""
        kind = self.kind(v)
        return kind != STEADY and kind != DRAWN and not isinstance(kind, int)

    def _scalars(self, v, role: str) -> tuple[list | None, list[int]]:
        """Return the scalars of all rows that a factor of the inputs is a product of, and the equations up to it."""
        if isinstance(v, Literal) or v not in self.varies or not self._is_scalar(v):
            return [], []
        if _single(v):
            return [(v, role)], []
        eqn = self.maker[v]
        name, reads = eqn.primitive.name, eqn.invars
        if name in _PASS:
            parts = [(reads[0], role)]
        elif name in ("mul", "div"):
            other = {"mul": "div", "div": "mul"}[role]
            parts = [(reads[0], role), (reads[1], other if name == "div" else role)]
        else:
            return None, []
        scalars, way = [], [id(eqn)]
        for operand, its_role in parts:
            found, below = self._scalars(operand, its_role)
            if found is None:
                return None, []
            scalars += found
            way += below
        return scalars, way

    def _extend_path(self, path: _Path, eqn, scalars: list) -> _Path:
        self.way.add(id(eqn))
        return _Path((*path.scalars, *scalars), path.divisors, path.sizes)

    def _record_path(self, path: _Path) -> None:
        """Enter the scalars on the way to a value that the loss is a sum of."""
        if not path.scalars:
            return
        mean = any(math.isclose(size, number, rel_tol=1e-6) for size in path.sizes for number in path.divisors)
        factor = 1.0 if mean else float(self.count)
        for v, role in path.scalars:
            own = v if isinstance(v, Literal) else self.same.get(v, v)
            entry = (role, 1.0 if role == "plain" else factor)
            factor = factor if role == "plain" else 1.0
            if self.found.setdefault(own, entry) != entry:
                self._record_unknown(self.maker[v], "parts of the loss are divided by one count in different ways")

    def _record_unknown(self, eqn, reason: str) -> None:
        line = source_line(eqn)
        self.unknown[reason + f" ({line})" * bool(line)] = None

    # -- the values of the batch -----------------------------------------------------------------------------------

    def replace_scalars(self) -> BatchCountProgram:
        """Return the program with the scalars that were found as inputs."""
        whole = _BatchValues(self)
        chosen = []
        for v in self.found:
            if whole.is_computable(v):
                chosen.append(v)
            else:
                self._record_unknown(
                    self.maker[v], "a part of the loss depends on a value across the rows of a micro-batch"
                )
        fresh: dict = {v: Var(v.aval) for v in chosen}
        eqns = [self._substitute_batch_values(eqn, fresh) for eqn in self.eqns] if fresh else []
        # One that is read otherwise on the way to the loss would be two values at once.
        if any(eqn is None for eqn in eqns):
            self._record_unknown(self.maker[chosen[0]], "the model reads the count that its loss is divided by")
            fresh = {}
        if not fresh:
            return BatchCountProgram(self.closed, list(self.unknown))
        jaxpr = self.closed.jaxpr
        changed = jaxpr.replace(
            constvars=list(self.consts),
            invars=[*self.invars, *fresh.values()],
            eqns=live_equations(eqns, self.outvars),
            outvars=self.outvars,
            debug_info=jaxpr.debug_info.with_unknown_names(),
        )
        entries = [(v, *self.found[v]) for v in chosen]
        values = whole.function(entries)
        return BatchCountProgram(ClosedJaxpr(changed, list(self.consts.values())), list(self.unknown), values)

    def _substitute_batch_values(self, eqn, fresh: dict):
        """Return an equation that reads the batch's values in place of a micro-batch's; None if it must not."""
        reads = [v if isinstance(v, Literal) else fresh.get(self.same.get(v, v), v) for v in eqn.invars]
        if all(a is b for a, b in zip(reads, eqn.invars, strict=True)):
            return eqn
        if id(eqn) in self.way or id(eqn) not in self.before:
            return eqn.replace(invars=reads)
        return None if any(v in self.learned for v in eqn.outvars) else eqn


class _BatchValues:
    """Scalars of the inputs for the whole batch: sums over rows of all micro-batches, then values computed from them.

    Args:
        search: the program.
    """

    def __init__(self, search: _Search) -> None:
        self._search = search
        self._maker = search.maker
        self.sums: dict[Any, Any] = {}  # variable → the equation that makes it of the rows
        self.steady: dict[Any, None] = {}

    def is_computable(self, v) -> bool:
        """Return whether the value for the whole batch is known, and record its operands."""
        open_, found, steady = [v], {}, {}
        while open_:
            v = open_.pop()
            if isinstance(v, Literal) or v in found or v in steady:
                continue
            if v not in self._search.varies:
                steady[v] = None
                continue
            eqn = self._maker.get(v)
            if eqn is None or len(eqn.outvars) > 1:
                return False
            name = eqn.primitive.name
            varying = [r for r in eqn.invars if not isinstance(r, Literal) and r in self._search.varies]
            if all(_single(r) and self._search._is_scalar(r) for r in varying):
                if name in known.CONTROL or name not in known.CHEAP | known.NONLINEAR | _PASS | {"div", "clamp"}:
                    return False
                open_ += eqn.invars
                continue
            kinds = [self._search.kind(r) for r in varying]
            sums = name == "reduce_sum" or (name == "dot_general" and self._search.kind(v) == SUM)
            if UNKNOWN in kinds or not (sums or (name in _GATHERED and SUM not in kinds)):
                return False
            found[v] = eqn
        self.sums |= found
        self.steady |= steady
        return True

    def function(self, entries: list) -> Callable[..., list]:
        """Return a function of stacked inputs that returns the values which take the place of micro-batches'."""
        search = self._search
        narrow = {v: eqn.invars[0] for v, eqn in self.sums.items() if eqn.primitive.name == "reduce_sum"}
        narrow = {v: x for v, x in narrow.items() if _is_low(x.aval.dtype)}
        wanted = [*(narrow.get(v, v) for v in self.sums), *self.steady]
        eqns = live_equations(search.eqns, wanted)
        reads = {v for eqn in eqns for v in eqn.invars if not isinstance(v, Literal)} | set(wanted)
        places = [i for i, v in enumerate(search.invars) if v in reads]
        stacked = {*search.places["rows"], *search.places["drawn"]}
        jaxpr = search.closed.jaxpr.replace(
            constvars=list(search.consts),
            invars=[search.invars[i] for i in places],
            eqns=eqns,
            outvars=wanted,
            debug_info=search.closed.jaxpr.debug_info.with_unknown_names(),
        )
        run = jaxpr_as_fun(ClosedJaxpr(jaxpr, list(search.consts.values())))

        def values(*arrays) -> list:
            given = [arrays[i] for i in places]
            axes = [0 if i in stacked else None for i in places]
            found = jax.vmap(lambda *a: tuple(run(*a)), axes, 0, axis_size=search.count)(*given)
            env = {}
            for v, each in zip([*self.sums, *self.steady], found, strict=True):
                if v in self.steady:
                    env[v] = each[0]
                    continue
                gather = _gather_of(self.sums[v].primitive.name)
                each = each.astype(jnp.float32) if _is_low(each.dtype) else each
                kept = np.dtype(jnp.float32) if _is_low(v.aval.dtype) else v.aval.dtype
                env[v] = gather(each, axis=None if v in narrow else 0).astype(kept).reshape(v.aval.shape)
            results = []
            for v, role, factor in entries:
                value = self._value(v, env)
                if factor != 1.0:
                    value = value / factor if role == "div" else value * factor
                results.append(value.astype(v.aval.dtype).reshape(v.aval.shape))
            return results

        return values

    def _value(self, v, env: dict):
        """Return a scalar of the whole batch; values of 16 bits are computed in float32."""
        if isinstance(v, Literal):
            value = jnp.asarray(v.val, v.aval.dtype)
            return value.astype(jnp.float32) if _is_low(value.dtype) else value
        if v in env:
            return env[v]
        eqn = self._maker[v]
        operands = [self._value(r, env) for r in eqn.invars]
        name = eqn.primitive.name
        if name in ("mul", "div"):
            operands = self._rescale_mean(eqn, operands)
        if name == "convert_element_type" and _is_low(np.dtype(eqn.params["new_dtype"])):
            env[v] = operands[0].astype(jnp.float32)
        else:
            env[v] = eqn.primitive.bind(*operands, **eqn.params)
        return env[v]

    def _rescale_mean(self, eqn, operands: list) -> list:
        """Return the operands of a mean over the rows of a micro-batch so that it is the mean over those of all."""
        size, number = self._elements(eqn.invars[0]), eqn.invars[1]
        if size is None or not isinstance(number, Literal):
            return operands
        value = float(np.asarray(number.val).reshape(-1)[0])
        if eqn.primitive.name == "div" and math.isclose(value, size, rel_tol=1e-6):
            return [operands[0], operands[1] * self._search.count]
        if eqn.primitive.name == "mul" and math.isclose(value * size, 1.0, rel_tol=1e-6):
            return [operands[0], operands[1] / self._search.count]
        return operands

    def _elements(self, v) -> int | None:
        """Return the number of elements that a value is the sum of, None if it is none."""
        while not isinstance(v, Literal) and v not in self.sums:
            eqn = self._maker.get(v)
            if eqn is None or eqn.primitive.name not in _PASS:
                return None
            v = eqn.invars[0]
        if isinstance(v, Literal) or self.sums[v].primitive.name != "reduce_sum":
            return None
        return self.sums[v].invars[0].aval.size


def _single(v) -> bool:
    return v.aval.size == 1


def _is_low(dtype) -> bool:
    return jnp.issubdtype(dtype, jnp.floating) and np.dtype(dtype).itemsize < 4


def _counts_inside(program, flags: list[bool | None]) -> bool:
    """Return whether a program inside an equation reduces values of the inputs alone to a scalar."""
    jaxpr = program.jaxpr if isinstance(program, ClosedJaxpr) else program
    if len(flags) != len(jaxpr.invars):
        return True  # a loop or a branch, whose operands are others: it may
    kind: dict = dict(zip(jaxpr.invars, flags, strict=True))
    for eqn in jaxpr.eqns:
        given = [False if isinstance(v, Literal) else kind.get(v, False) for v in eqn.invars]
        of_inputs = any(given) and None not in given
        shrinks = any(f and not _single(v) for f, v in zip(given, eqn.invars, strict=True))
        if of_inputs and shrinks and any(_single(v) for v in eqn.outvars):
            return True
        inner = eqn.params.get(known.CALLS.get(eqn.primitive.name, ""))
        if inner is not None and _counts_inside(inner, given):
            return True
        if eqn.primitive.name == "optimization_barrier":
            kind.update(zip(eqn.outvars, given, strict=True))
        else:
            kind.update(dict.fromkeys(eqn.outvars, None if None in given else any(given)))
    return False
