"""Automatic tensor parallelism by Megatron's rule, for a step without annotations.

For ``down(gelu(up(x)))`` with ``up`` of shape ``(D, 4D)`` and ``down`` of shape ``(4D, D)``:

    x (B, T, D)      B      is whole, so `up` is split by columns
    up (D, 4D)       S1
    x · up           S2     and stays split through gelu
    down (4D, D)     S0     its rows meet the split dim
    (x · up) · down  P → B  one all-reduce for the pair

The walk knows no names and no layers. It carries the layout of every value of one mesh axis through the strategies of
the planner's table; a parameter that meets a whole value in a product is split by columns, one that meets a split value
is split to match it, a table is split by the rows it is looked up by, a partial sum is added up at once. The layouts of
biases and norms follow in the same way. A parameter is decided where it is first used. The parts that a split value is
cut into stay split: for queries, keys and values of one product, Megatron-LM orders the rows of its weight by heads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from sbpjax._core.jax_private import Var
from sbpjax._core.planner.boundaries import forward_of
from sbpjax._core.planner.control import body_program
from sbpjax._core.programs.normalise import Program, scan_counts
from sbpjax._core.programs.primitives import BARRIERS, CASTS, LINEAR, MOVES, PRODUCTS
from sbpjax._core.programs.rules import Strategy, strategies_of
from sbpjax.sbp import algebra
from sbpjax.sbp.algebra import B, P

# Primitives that give the elements of a parameter again; the split goes back through them to the parameter itself.
_ALIASES = MOVES | CASTS | LINEAR | BARRIERS | {"broadcast_in_dim", "slice", "dynamic_slice"}
_READ_TABLES = PRODUCTS | {"gather"}
_CUTS = {"slice", "split"}


class TensorParallel:
    """The layouts of parameters by Megatron's rule on one mesh axis, and the values that it sums.

    Attributes:
        codes: parameter → code; dims that do not divide by the axis are never split.
        summed: parameter → bytes of the values that ranks add up for it in one step: the result of a product whose rows
            are split, and the gradient of the value that a product with split columns reads.
        read: parameter → bytes of it as products read it in one step, in the dtype of the product.
    """

    def __init__(self, program: Program, parameters: Iterable[int], size: int) -> None:
        walk = _Walk(size)
        parameters = list(parameters)
        for i in parameters:
            walk.waiting[program.invars[i]] = (i, ())
        walk.run(program)
        self.codes = {i: walk.decided.get(i, B) for i in parameters}
        self.summed, self.read = walk.summed, walk.read


class _Walk:
    """The layouts of values on one axis.

    Attributes:
        codes: value → code, for values that are no parameters.
        waiting: value → the parameter that it is, and the equations between the two, the last one first.
        decided: parameter → code.
        summed: parameter → bytes, as in `TensorParallel`.
        read: parameter → bytes, as in `TensorParallel`.
        learned: values that depend on a parameter, which have gradients.
        shared: values whose gradients are counted in ``summed``.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.codes: dict[Var, int] = {}
        self.waiting: dict[Var, tuple[int, tuple]] = {}
        self.decided: dict[int, int] = {}
        self.summed: Counter[int] = Counter()
        self.read: Counter[int] = Counter()
        self.learned: set[Var] = set()
        self.shared: set[Var] = set()

    def run(self, program: Program) -> None:
        for i in forward_of(program):
            eqn = program.eqns[i]
            if eqn.primitive.name == "scan":
                self._loop(eqn)
                continue
            read = [v for v in eqn.invars if isinstance(v, Var)]
            if eqn.primitive.name == "to_sbp":  # a layout that the user forced
                self._copy(read[0], eqn.outvars[0])
                continue
            owned = [v for v in read if v in self.waiting]
            if len(owned) == 1 and read[:1] == owned and eqn.primitive.name in _ALIASES and len(eqn.outvars) == 1:
                position, chain = self.waiting[owned[0]]
                self.waiting[eqn.outvars[0]] = (position, (eqn, *chain))
                continue
            self._assign_equation(eqn)

    def _code(self, v) -> int | None:
        """Return the code of a value; None of a parameter that is not decided."""
        if not isinstance(v, Var) or v not in self.waiting:
            return self.codes.get(v, B) if isinstance(v, Var) else B
        position, chain = self.waiting[v]
        code = self.decided.get(position)
        for eqn in reversed(chain):
            code = None if code is None else _propagate_code(eqn, code, self.size, forward=True)
        return code

    def _copy(self, v: Var, copy: Var) -> None:
        """Let a value be laid out as another one."""
        if v in self.waiting:
            self.waiting[copy] = self.waiting[v]
        else:
            self.codes[copy] = self.codes.get(v, B)
        if v in self.learned:
            self.learned.add(copy)

    def _assign_equation(self, eqn) -> None:
        given = [self._code(v) for v in eqn.invars]
        strategy = self._strategy(eqn, given) if eqn.outvars else None
        for v, known, code in zip(eqn.invars, given, strategy.ins if strategy else (), strict=False):
            if known is None:
                self._decide(v, code)
        if strategy is not None and eqn.primitive.name in _READ_TABLES:
            self._count_sums(eqn, strategy)
        if any(isinstance(v, Var) and (v in self.waiting or v in self.learned) for v in eqn.invars):
            self.learned.update(eqn.outvars)
        outs = strategy.outs if strategy else (B,) * len(eqn.outvars)
        self.codes.update((v, B if code == P else code) for v, code in zip(eqn.outvars, outs, strict=True))

    def _strategy(self, eqn, given: list) -> Strategy:
        """Return the strategy that fits the values at hand: a split one stays as it is, a whole one may be sliced."""
        if eqn.primitive.name in _CUTS and given[0] is not None and all(self._even(v, given[0]) for v in eqn.outvars):
            return Strategy((given[0],), (given[0],) * len(eqn.outvars))
        every = strategies_of(eqn, self.size)
        split = any(c is not None and c >= 0 for c in given)
        fits = [
            r for r in every if P not in r.ins and all(g in (None, B, c) for g, c in zip(given, r.ins, strict=True))
        ]
        fits = [r for r in fits if all(self._even(v, c) for v, c in zip(eqn.invars, r.ins, strict=True))]
        if not split:
            whole = every[-1]
            if not (None in given and eqn.primitive.name in _READ_TABLES):
                return whole
            at = given.index(None)
            own = [r for r in fits if r.ins[at] >= 0 and all(c == B for k, c in enumerate(r.ins) if k != at)]
            table = [r for r in own if eqn.primitive.name == "gather" and r.outs == (P,)]
            return max(table or own or [whole], key=lambda r: r.outs[0])  # the last dim: the columns
        kept = [r for r in fits if all(c == g for g, c in zip(given, r.ins, strict=True) if g is not None and g >= 0)]
        if None in given and eqn.primitive.name in _READ_TABLES:
            kept.sort(key=lambda r: r.outs[0] != P)  # the rows meet the split dim
        else:
            kept.sort(key=lambda r: sum(c != B for g, c in zip(given, r.ins, strict=True) if g == B))
        return kept[0] if kept else every[-1]

    def _count_sums(self, eqn, strategy: Strategy) -> None:
        """Count the sums over ranks that a product with a parameter needs, in the forward and for gradients."""
        for k, v in enumerate(eqn.invars):
            if not isinstance(v, Var) or v not in self.waiting:
                continue
            position = self.waiting[v][0]
            self.read[position] += _nbytes(v)
            if strategy.ins[k] < 0:
                continue
            if P in strategy.outs:
                self.summed[position] += sum(map(_nbytes, eqn.outvars))
            for u, code in zip(eqn.invars, strategy.ins, strict=True):
                if u is not v and code == B and u in self.learned and u not in self.shared:
                    self.shared.add(u)
                    self.summed[position] += _nbytes(u)

    def _even(self, v, code: int) -> bool:
        return code < 0 or v.aval.shape[code] % self.size == 0

    def _decide(self, v: Var, code: int) -> None:
        position, chain = self.waiting[v]
        for eqn in chain:
            code = _propagate_code(eqn, code, self.size, forward=False)
        self.decided.setdefault(position, code)

    def _loop(self, eqn) -> None:
        """Walk through the body of a loop; a stack of parameters is split as its slices are."""
        body = body_program(eqn.params["jaxpr"])
        consts, carry = scan_counts(eqn.params)
        inner = _Walk(self.size)
        outer: dict[int, tuple] = {}
        for k, (v, u) in enumerate(zip(eqn.invars, body.invars, strict=True)):
            by = 1 if k >= consts + carry else 0
            if isinstance(v, Var) and v in self.waiting and self._code(v) is None:
                inner.waiting[u] = (k, ())
                outer[k] = (v, by)
            else:
                code = self._code(v)
                inner.codes[u] = (
                    algebra.shift_splits((B if code is None else code,), -by)[0] if code != 0 or not by else B
                )
        inner.learned = {u for v, u in zip(eqn.invars, body.invars, strict=True) if v in self.learned}
        inner.run(body)
        times = eqn.params["length"]
        for k, (v, _) in outer.items():
            position = self.waiting[v][0]
            self.summed[position] += inner.summed[k] * times
            self.read[position] += inner.read[k] * times
        self.learned.update(eqn.outvars if outer else ())
        for k, (v, by) in outer.items():
            self._decide(v, algebra.shift_splits((inner.decided.get(k, B),), by)[0])
        for k, (v, u) in enumerate(zip(eqn.outvars, body.outvars, strict=True)):
            code = inner.codes.get(u, B) if isinstance(u, Var) else B
            self.codes[v] = algebra.shift_splits((code,), 0 if k < carry else 1)[0]


def _nbytes(v: Any) -> int:
    return v.aval.size * v.aval.dtype.itemsize


def _propagate_code(eqn, code: int, size: int, *, forward: bool) -> int:
    """Return the code of an equation's result given that of its first operand, or the other way round; B if none is."""
    if code == B:
        return B
    for strategy in strategies_of(eqn, size):
        there, here = (strategy.outs[0], strategy.ins[0]) if forward else (strategy.ins[0], strategy.outs[0])
        if here == code and there >= 0:
            return there
    return B
