"""Integer linear program: chooses a sharding strategy per node, on one mesh axis or swapping those of two axes.

One column per node and option (``x``, one option of each node is taken), and one column per value, reader and pair of
layouts (``f``, the flow from layout ``s`` of the producer to layout ``t`` of the reader): the flows out of ``s`` sum to
the producer's choice of ``s``, the flows into ``t`` to the reader's choice of ``t``. A conversion that several readers
share is a column ``z`` at least as large as each of their flows, and is paid once. An option is a strategy per axis and
all costs are whole: a conversion is priced along its path over all axes, so choice after choice descends on the cost of
the whole plan.

`solve_axis` offers the strategies of one axis, the others staying. `exchange` offers a node's current strategies and
the same with two axes swapped: where a part of the program has its axes swapped, neither axis can fix it alone.

The launch of a collective that several values go by is charged in shares (`Problem.launch_share_us`): a column that is
paid once, as ``z`` is, would couple all of them, and the relaxation would not be integral.

The relaxation is nearly always integral; where it is not, HiGHS branches on ``x``.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from sbpjax._core.programs.plan import Codes
from sbpjax._core.runtime.optional_packages import LazyModule
from sbpjax.sbp.layout import local_shape

from .graph import Fixed, Value
from .problem import OVER_LIMIT_US_PER_BYTE, Assignment, Problem, codes_of, converts_for_free
from .solver import Basis, Linear, branch_and_bound, solve

sparse = LazyModule("scipy.sparse")


# Branch and bound is rarely needed; node and gap limits, unlike a time limit, keep it deterministic.
_GAP = 1e-3
_NODES = 2000
_INTEGRAL = 1e-5
# A tie-break between the strategies of an equation, so that equal equations choose alike.
_ORDER_US = 1e-7


@dataclass
class Solution:
    """The solution that HiGHS found.

    Attributes:
        strategies: the choice of every node: a strategy per axis for several axes, the strategy itself for one.
        bound_us: a lower bound on the cost of every choice among the options.
        integral: whether the relaxation was integral.
        basis: the final basis of the solver; a later solve of the axis starts there.
    """

    strategies: list
    bound_us: float
    integral: bool
    basis: Basis | None = None


def solve_axis(problem: Problem, assignment: Assignment, axis: int, start: Basis | None = None) -> Solution:
    """Return the best strategies on ``axis``, the other axes of ``assignment`` staying as they are."""
    axes = tuple(sorted({*assignment.axes, axis}))
    options = []
    for node in range(len(problem.graph.nodes)):
        every = [assignment.strategies_of(node, axes, axis, s) for s in problem.strategies(node, axis)]
        # Legal given the strategies on the other axes: nested splits of one dim must divide together.
        options.append([c for c in every if problem.legal(node, c, axes)] or every[-1:])
    at = axes.index(axis)
    solution = _Assembly(problem, axes, options, at).solve(start)
    return replace(solution, strategies=[chosen[at] for chosen in solution.strategies])


def exchange(problem: Problem, assignment: Assignment, first: int, second: int) -> Assignment:
    """Return an assignment of all axes with ``first`` and ``second`` exchanged at the nodes where that is cheapest."""
    axes = assignment.axes
    other = {first: second, second: first}
    options = []
    for node in range(len(problem.graph.nodes)):
        stays = assignment.strategies_of(node, axes)
        exchanged = tuple(assignment.strategies[other.get(a, a)][node] for a in axes)
        offered = all(exchanged[axes.index(a)] in problem.strategies(node, a) for a in other)
        may = exchanged != stays and offered and problem.legal(node, exchanged, axes)
        options.append([stays, exchanged] if may else [stays])
    found = _Assembly(problem, axes, options).solve().strategies
    return Assignment({a: [chosen[place] for chosen in found] for place, a in enumerate(axes)})


class _Assembly:
    """The columns and constraints of a choice among options; an expression is ``([columns], constant)``.

    Args:
        problem: the graph with its prices.
        axes: the axes.
        options: for every node its options: a strategy per axis each.
        at: the place in ``axes`` of the axis in which options differ, if it is one. Then columns and constraints have
            names that stay when the other axes choose anew, and a solve may start from an earlier one's basis.
    """

    def __init__(self, problem: Problem, axes: tuple[int, ...], options: list[list[tuple]], at: int | None = None):
        self.problem = problem
        self.axes = axes
        self.options = options
        self.at = at
        self.cost: list[float] = []
        self.names: list[tuple] = []  # of the columns
        self.constraints: list[tuple] = []  # the names of the constraints
        self.constant = 0.0
        self.entries: list[tuple[int, int, float]] = []  # (constraint, column, coefficient)
        self.lower: list[float] = []
        self.upper: list[float] = []
        self.first: list[int] = []
        self._flows: dict = {}
        self._copies: list[tuple] = []  # value, layout, expression: conversions of single readers
        self._add_nodes()
        for number, (value, count) in enumerate(problem.graph.values.items()):
            self._add_value(number, value, count)
        self._slack = None
        if problem.memory_bytes is not None or problem.model.memory_us_per_byte:
            self._add_memory()

    def _column(self, cost: float, *name) -> int:
        self.cost.append(cost)
        self.names.append(name)
        return len(self.cost) - 1

    def _constrain(self, terms, lower: float, upper: float, *name) -> None:
        """Add ``lower ≤ Σ coefficient · column ≤ upper``; terms may repeat a column."""
        row = len(self.lower)
        self.constraints.append(name)
        self.entries += [(row, column, coefficient) for column, coefficient in terms]
        self.lower.append(lower)
        self.upper.append(upper)

    def _add_nodes(self) -> None:
        for node, (group, options) in enumerate(zip(self.problem.graph.nodes, self.options, strict=True)):
            self.first.append(len(self.cost))
            for place, chosen in enumerate(options):
                us = self.problem.node_us(node, chosen, self.axes)
                named = chosen if self.at is None else (chosen[self.at].ins, chosen[self.at].outs)
                self._column(group.count * (us + _ORDER_US * place), "strategy", node, *named)
            columns = range(self.first[node], self.first[node] + len(options))
            self._constrain([(c, 1.0) for c in columns], 1.0, 1.0, "node", node)

    def _name(self, codes: Codes):
        return codes if self.at is None else codes[self.at]

    def _layouts(self, end, outgoing: bool) -> dict[Codes, tuple[list[int], float]]:
        """Return layout → expression of the share that an end takes of it."""
        if isinstance(end, Fixed):
            return {tuple(end.codes[a] for a in self.axes): ([], 1.0)}
        node, position = end
        found: dict[Codes, tuple[list[int], float]] = {}
        for i, chosen in enumerate(self.options[node]):
            found.setdefault(codes_of(chosen, position, outgoing), ([], 0.0))[0].append(self.first[node] + i)
        # An end that has no choice is a constant, not a column.
        return {next(iter(found)): ([], 1.0)} if len(found) == 1 else found

    def _flow(self, value: Value, reader) -> dict[tuple[Codes, Codes], tuple[list[int], float]]:
        """Return ``(s, t)`` → expression of the flow from a value's source to one of its readers."""
        key = (value.source, reader)
        found = self._flows.get(key)
        if found is None:
            sources, targets = self._layouts(value.source, True), self._layouts(reader, False)
            # With one layout at either end the flow is the other end's choice: it needs no column of its own.
            if len(sources) == 1:
                s = next(iter(sources))
                found = {(s, t): expression for t, expression in targets.items()}
            elif len(targets) == 1:
                t = next(iter(targets))
                found = {(s, t): expression for s, expression in sources.items()}
            else:
                named = {codes: self._name(codes) for codes in (*sources, *targets)}
                found = {
                    (s, t): ([self._column(0.0, "flow", *key, named[s], named[t])], 0.0)
                    for s in sources
                    for t in targets
                }
                for s, (columns, _) in sources.items():
                    self._balance([found[s, t][0][0] for t in targets], columns, "out", *key, named[s])
                for t, (columns, _) in list(targets.items())[:-1]:  # the last one follows from the others
                    self._balance([found[s, t][0][0] for s in sources], columns, "in", *key, named[t])
            self._flows[key] = found
        return found

    def _balance(self, flows: list[int], columns: list[int], *name) -> None:
        self._constrain([*((f, 1.0) for f in flows), *((c, -1.0) for c in columns)], 0.0, 0.0, *name)

    def _charge(self, expression, cost: float) -> None:
        columns, constant = expression
        self.constant += constant * cost
        for c in columns:
            self.cost[c] += cost

    def _add_value(self, number: int, value: Value, count: int) -> None:
        shared: dict[Codes, dict[Codes, list]] = {}
        for reader in value.readers:
            for (source, target), flow in self._flow(value, reader).items():
                cost, moved = self._conversion(value, count, source, target)
                # A local step, such as a slice, is charged per reader: it is not worth a column and its constraints.
                if moved and self.problem.model.shares:
                    shared.setdefault(source, {}).setdefault(target, []).append((reader, flow))
                elif cost:
                    self._charge(flow, cost)
        for source, wanted in shared.items():
            self._charge_shared_conversions(number, value, count, source, wanted)

    def _conversion(self, value: Value, count: int, source: Codes, target: Codes) -> tuple[float, int]:
        """Return the time and bytes of all members of a value, with their shares of combined launches."""
        us, moved = self.problem.conversion(value, self.axes, source, target)
        launches = self.problem.launches(value, self.axes, source, target) if moved else ()
        return count * (us + sum(map(self.problem.launch_share_us, launches))), moved

    def _charge_shared_conversions(
        self, number: int, value: Value, count: int, source: Codes, wanted: dict[Codes, list]
    ) -> None:
        """Charge the conversions of one source layout, each once however many readers want it.

        ``wanted`` has for every target layout ``(reader, flow)`` pairs. A copy that gives another target for free
        (all-gathered once, sliced by another reader) may carry that reader's flow too; the flow of one reader through a
        copy, over all targets, is at most the copy.
        """
        covers = {
            t: [u for u in wanted if converts_for_free(self.problem, value, self.axes, source, u, t)] for t in wanted
        }
        used = {u for found in covers.values() for u in found}
        paid: dict[Codes, int] = {}
        names = self._names_of(number, source, wanted)
        for target, flows in wanted.items():
            cost = self._conversion(value, count, source, target)[0]
            # No other reader shares it: charge the flow itself, which saves the column and its constraints.
            if len(flows) == 1 and not covers[target] and target not in used:
                self._charge(flows[0][1], cost)
                self._copies.append((value, target, flows[0][1]))
            else:
                paid[target] = self._column(cost, "paid", *names[target])
                self._copies.append((value, target, ([paid[target]], 0.0)))
        through: dict = {}  # (copy, reader) → columns of the flow from that copy to the reader for other targets
        for target, column in paid.items():
            for reader, (columns, constant) in wanted[target]:
                terms = [(column, 1.0), *((c, -1.0) for c in columns)]
                for u in covers[target]:
                    detour = self._column(0.0, "detour", *names[target], *names[u], reader)
                    through.setdefault((u, reader), []).append(detour)
                    terms.append((detour, 1.0))
                self._constrain(terms, constant, math.inf, "copy", *names[target], reader)
        # Without this limit the relaxation cheats: a reader that takes a quarter each of S0, S1, S2 and B pays for a
        # quarter of one gather. With it, it was integral in every program of the tests and benchmarks.
        for (u, reader), detours in through.items():
            columns, constant = dict(wanted[u]).get(reader, ([], 0.0))
            terms = [(paid[u], 1.0), *((c, -1.0) for c in (*columns, *detours))]
            self._constrain(terms, constant, math.inf, "through", *names[u], reader)

    def _names_of(self, number: int, source: Codes, targets) -> dict[Codes, tuple]:
        """Return names for the conversions of a value from one layout; see `at`."""
        seen: Counter = Counter()
        names = {}
        for target in targets:
            name = self._name(target)
            names[target] = (number, self._name(source), name, seen[name])
            seen[name] += 1
        return names

    def _add_memory(self) -> None:
        sizes = tuple(self.problem.sizes[a] for a in self.axes)
        live: list[tuple] = []  # bytes and expressions
        for value, count in self.problem.graph.live.items():
            for codes, expression in self._layouts(value.source, True).items():
                live.append((count * math.prod(local_shape(value.shape, codes, sizes)) * value.itemsize, expression))
        for value, target, expression in self._copies:
            count = self.problem.graph.kept.get(value, 0)
            if count:
                live.append((count * math.prod(local_shape(value.shape, target, sizes)) * value.itemsize, expression))
        for nbytes, expression in live:
            self._charge(expression, nbytes * self.problem.model.memory_us_per_byte)
        if self.problem.memory_bytes is None:
            return
        limit = self.problem.memory_bytes
        # In shares of the limit: coefficients of 1e10 bytes beside ones of 1 spoil HiGHS's tolerances.
        scale = 1 / max(limit, 1.0)
        self._slack = self._column(OVER_LIMIT_US_PER_BYTE / scale, "slack")
        terms = [(c, nbytes * scale) for nbytes, (columns, _) in live for c in columns]
        fixed = sum(nbytes * constant for nbytes, (_, constant) in live)
        self._constrain([*terms, (self._slack, -1.0)], -math.inf, (limit - fixed) * scale, "memory")

    def solve(self, start: Basis | None = None) -> Solution:
        """Run HiGHS: the relaxation first, branch and bound only if it is not integral."""
        if not self.cost:
            return Solution([], self.constant, True)
        cost = np.asarray(self.cost)
        positive = cost[cost > 0]
        # HiGHS's tolerances are absolute: costs are scaled to near 1 for any size of model.
        scale = 1.0 / float(np.median(positive)) if positive.size else 1.0
        program = self._linear(cost * scale)
        relaxed = solve(program, start)
        bound = relaxed.cost / scale + self.constant if relaxed.x is not None else -math.inf
        chosen = relaxed.x
        integral = chosen is not None and all(
            chosen[a : a + len(o)].max() > 1 - _INTEGRAL for a, o in zip(self.first, self.options)
        )
        # Not seen in the tests and benchmarks: the relaxation was integral in every program, and takes half the time of
        # the MILP.
        if not integral:
            whole = np.zeros(len(cost))
            for a, options in zip(self.first, self.options):
                whole[a : a + len(options)] = 1
            result = branch_and_bound(program, whole, {"mip_rel_gap": _GAP, "node_limit": _NODES})
            chosen = result.x if result.x is not None else chosen
            bound = max(bound, (result.mip_dual_bound or -math.inf) / scale + self.constant)
        if chosen is None:  # the solver gave up: every choice is feasible, so broadcast everywhere is one
            return Solution([o[-1] for o in self.options], bound, False)
        found = [o[int(np.argmax(chosen[a : a + len(o)]))] for a, o in zip(self.first, self.options)]
        return Solution(found, bound, integral, relaxed.basis)

    def _linear(self, cost: np.ndarray) -> Linear:
        row, column, value = zip(*self.entries)
        matrix = sparse.csr_matrix((value, (row, column)), shape=(len(self.lower), len(cost)))
        bound = np.ones(len(cost))
        if self._slack is not None:
            bound[self._slack] = np.inf
        return Linear(cost, bound, matrix, np.asarray(self.lower), np.asarray(self.upper), self.names, self.constraints)
