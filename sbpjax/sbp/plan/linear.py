"""The linear program of a choice among given rows of every node: those of one mesh axis, or two axes' exchanged.

One column per node and option (``x``, one option of each node is taken), and one column per value, reader and pair of
layouts (``f``, how much flows from layout ``s`` of the producer to layout ``t`` of the reader): the flows out of ``s``
sum to the producer's choice of ``s``, the flows into ``t`` to the reader's choice of ``t``. A conversion that several
readers share is a column ``z`` at least as large as each of their flows, and is paid once. An option is a row per axis
and all costs are whole: a conversion is priced along its path over all axes, so choice after choice descends on the
cost of the whole plan.

`solve_axis` offers the rows of one axis, the others staying. `exchange` offers what a node has and the same with two
axes in each other's place: where a part of the program lies the wrong way round, neither axis can turn it alone.

The relaxation is nearly always integral; where it is not, HiGHS branches on ``x``.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from .. import boxing
from ..algebra import B, P
from ..cost import CostModel, products_us
from ..layout import local_shape
from ..local_work import local_bytes
from ..rules import Row, jointly_legal, rows_of
from .at_rest import fetched_bytes, fetched_of_given, touches, written
from .exact import hidden_bytes
from .graph import Fixed, Graph, Group, Value
from .ports import port_rows
from .slack import VISIBLE
from .solver import Basis, Linear, branched, solve
from .types import Codes

# Branch and bound is rarely needed; node and gap limits, unlike a time limit, keep it deterministic.
_GAP = 1e-3
_NODES = 2000
_INTEGRAL = 1e-5
# What a byte above the memory limit costs: far more than moving it.
_OVER_LIMIT_US_PER_BYTE = 1.0
# What orders the dims that a returned value may be split along, where all else is equal.
_TIE_US = 1e-4
# What orders the rows of an equation where even that is equal, so that equal equations choose alike.
_ORDER_US = 1e-7
# What holding a byte of a loop's stack costs, as a share of moving it.
_HELD = 1e-3


@dataclass
class Problem:
    """The graph with its prices; what all axes share.

    Attributes:
        graph: nodes and values.
        sizes: the placement's hierarchy.
        model: the prices.
        memory_bytes: the limit per device, or None.
    """

    graph: Graph
    sizes: Codes
    model: CostModel
    memory_bytes: float | None = None

    def __post_init__(self) -> None:
        self._rows: dict = {}
        self._work: dict = {}
        self._hidden: dict = {}
        self._tiled: dict = {}

    def rows(self, node: int, axis: int) -> list[Row]:
        """Return the rows of a node on an axis."""
        group = self.graph.nodes[node]
        key = (group.signature, axis) if group.signature >= 0 else _key_of(group)
        found = self._rows.get(key)
        if found is None:
            if group.signature >= 0:
                found = rows_of(self.graph.signatures.examples[group.signature], self.sizes[axis], axis)
            elif group.port is not None:
                found = port_rows(group.port, group.aval)
            else:
                codes = [*(d for d, n in enumerate(group.aval.shape) if n > 1 and d not in group.whole), B]
                found = [Row((c,) if group.returned else (), (c,)) for c in codes]
            self._rows[key] = found
        return found

    def legal(self, node: int, chosen: tuple[Row, ...], axes: tuple[int, ...]) -> bool:
        """Return whether rows chosen for the axes ``axes`` go together."""
        group = self.graph.nodes[node]
        if group.signature < 0:
            return True
        sizes = tuple(self.sizes[a] for a in axes)
        return jointly_legal(self.graph.signatures.examples[group.signature], chosen, sizes)

    def node_us(self, node: int, chosen: tuple[Row, ...], axes: tuple[int, ...]) -> float:
        """Return the time of one member of a node under rows chosen for ``axes``."""
        group = self.graph.nodes[node]
        if group.signature < 0:
            return self._held_us(group, chosen, axes)
        eqn = self.graph.signatures.examples[group.signature]
        work = self._work.get(group.signature)
        if work is None:
            work = self._work[group.signature] = self.model.equation_us(eqn)
        share = math.prod(self.sizes[a] for a, row in zip(axes, chosen) if any(c >= 0 for c in (*row.ins, *row.outs)))
        own = self._tiled_us(group.signature, chosen, axes, work, share) if self.model.tiles else work / share
        own += self._at_rest_us(node, chosen, axes)
        return own + self._inner_us(node, chosen, axes) + self._invented_us(node, chosen, axes)

    def _tiled_us(self, signature: int, chosen: tuple[Row, ...], axes: tuple[int, ...], work: float, share: int):
        """Return the time of an equation by the blocks that one device touches; see `sbpjax.sbp.local_work`."""
        key = (signature, chosen, axes)
        found = self._tiled.get(key)
        if found is None:
            eqn = self.graph.signatures.examples[signature]
            ins, outs = (tuple(zip(*(getattr(row, side) for row in chosen))) for side in ("ins", "outs"))
            touched = local_bytes(eqn, ins, outs, tuple(self.sizes[a] for a in axes))
            if touched is None:
                found = work / share
            else:
                products = products_us(self.model, eqn) / share
                found = self.model.compute_ratio * max(products, self.model.memory_us(touched))
            self._tiled[key] = found
        return found

    def _inner_us(self, node: int, chosen: tuple[Row, ...], axes: tuple[int, ...]) -> float:
        """Return the time that one member of a node moves data inside itself; on unlike links, axis by axis."""
        total = self.inner_bytes(node, chosen, axes)
        if not total or not self.model.links:
            return self.model.wire_us(total)
        single = []
        for a in axes:
            alone = tuple(r if b == a else self.rows(node, b)[-1] for b, r in zip(axes, chosen))
            single.append(self.inner_bytes(node, alone, axes))
        known = sum(single) or 1  # an axis alone moves the bytes of the whole, so only the shares are taken
        return sum(self.model.wire_us(total * part / known, a) for a, part in zip(axes, single))

    def _sizes(self, axes: tuple[int, ...]) -> Codes:
        return tuple(self.sizes[a] for a in axes)

    @functools.cached_property
    def _touches(self) -> dict:
        return touches(self.graph) if self.model.tiles else {}

    def _at_rest_us(self, node: int, chosen: tuple[Row, ...], axes: tuple[int, ...]) -> float:
        """Return the time in which one member of a node reads inputs and writes new state; see `at_rest`."""
        found = self._touches.get(node, ())
        return self.model.memory_us(sum(t.bytes(chosen, self._sizes(axes)) for t in found)) if found else 0.0

    @functools.cached_property
    def standing_us(self) -> float:
        """The time to fetch given inputs ahead, the same in every plan of these pins."""
        return self.model.memory_us(fetched_of_given(self.graph, self.sizes)) if self.model.tiles else 0.0

    def _held_us(self, group: Group, chosen: tuple[Row, ...], axes: tuple[int, ...]) -> float:
        """Return what orders the layouts of a loop's stacks where all else is equal: the bytes that one device holds.

        A stack that is gathered before its loop, or reduced behind it, moves as much as its slices do inside.
        """
        if group.port is None and self.model.tiles:  # a free input
            block = math.prod(local_shape(group.aval.shape, tuple(r.outs[0] for r in chosen), self._sizes(axes)))
            return self.model.memory_us(fetched_bytes(block * group.aval.dtype.itemsize))
        if group.port not in ("sliced", "stacked"):
            return 0.0
        codes = tuple((row.outs if group.port == "sliced" else row.ins)[0] for row in chosen)
        slice_bytes = math.prod(local_shape(group.aval.shape, codes, tuple(self.sizes[a] for a in axes)))
        return _HELD * self.model.wire_us(slice_bytes * group.aval.dtype.itemsize * group.turns)

    def _invented_us(self, node: int, chosen: tuple[Row, ...], axes: tuple[int, ...]) -> float:
        """Return the time to gather what a node returns divided or partial on axes where every input is broadcast.

        The caller gave no layout there, so the gather that a divided result puts off is charged to the plan that
        divides it. Among equals the first dim is split, on N-D placements the last, as eager ops do.
        """
        total = 0.0
        for position, shape, itemsize in self.graph.returned.get(node, ()):
            codes = tuple(row.outs[position] for row in chosen)
            whole = tuple(B if a in self.graph.untouched else c for a, c in zip(axes, codes))
            total += self.price(shape, itemsize, axes, codes, whole)[0]
            total += _TIE_US * sum(_rank_of(c, len(shape), len(self.sizes)) for c in codes)
        return total

    def inner_bytes(self, node: int, chosen: tuple[Row, ...], axes: tuple[int, ...]) -> int:
        """Return the bytes that one member of a node moves inside itself."""
        signature = self.graph.nodes[node].signature
        key = (signature, chosen, axes)
        found = self._hidden.get(key)
        if found is None:
            eqn = self.graph.signatures.examples[signature]
            found = self._hidden[key] = hidden_bytes(eqn, chosen, tuple(self.sizes[a] for a in axes))
        return found

    @functools.cached_property
    def price(self):
        """Return ``(shape, itemsize, axes, source, target) → (µs, bytes)`` of a conversion."""

        @functools.cache
        def price(shape, itemsize: int, axes, source: Codes, target: Codes) -> tuple[float, int]:
            if source == target:
                return 0.0, 0
            sizes = tuple(self.sizes[a] for a in axes)
            steps = boxing.path(shape, itemsize, sizes, source, target)
            block = math.prod(local_shape(shape, target, sizes)) * itemsize
            return self.model.on(axes).steps_us(steps, block), sum(s.bytes for s in steps)

        return price

    def conversion(self, value: Value, axes: tuple[int, ...], source: Codes, target: Codes) -> tuple[float, int]:
        """Return the time and bytes of a conversion of a value, less the latency that other work hides."""
        us, moved = self.price(value.shape, value.itemsize, axes, source, target)
        if moved and value in self._written:
            us += self._put_back_us(value, axes, source, target)
        slack = self.graph.slack_us.get(value, 0.0) if self.model.hides and moved else 0.0
        if not slack:
            return us, moved
        sizes = tuple(self.sizes[a] for a in axes)
        steps = boxing.path(value.shape, value.itemsize, sizes, source, target)
        return us - min(slack, (1 - VISIBLE) * self.model.on(axes).latency_us(steps)), moved

    @functools.cached_property
    def _written(self) -> set[Value]:
        return written(self.graph) if self.model.tiles else set()

    def _put_back_us(self, value: Value, axes: tuple[int, ...], source: Codes, target: Codes) -> float:
        """Return the time to bring new state that is gathered into the place of the old; see `at_rest`."""
        sizes = tuple(self.sizes[a] for a in axes)
        steps = boxing.path(value.shape, value.itemsize, sizes, source, target)
        if not any(self.model.on(axes).is_gathered(step) for step in steps):
            return 0.0
        block = math.prod(local_shape(value.shape, target, sizes)) * value.itemsize
        return self.model.memory_us(2 * block)


def _key_of(group: Group) -> tuple:
    return group.port, group.aval.shape, str(group.aval.dtype), group.returned, group.whole


def _rank_of(code: int, ndim: int, axes: int) -> int:
    """Return the place of a code among equals: broadcast, then the dims (on N-D the last first), then partial."""
    return 0 if code == B else ndim + 1 if code < 0 else code + 1 if axes == 1 else ndim - code


class Assignment:
    """Rows of every node on some of the axes.

    Attributes:
        axes: the axes that are decided.
        rows: axis → a row per node.
    """

    def __init__(self, rows: dict[int, list[Row]]) -> None:
        self.rows = rows

    @property
    def axes(self) -> tuple[int, ...]:
        """The decided axes, outer first."""
        return tuple(sorted(self.rows))

    def chosen(self, node: int, axes: tuple[int, ...], axis: int | None = None, row: Row | None = None) -> tuple:
        """Return the rows of a node on ``axes``, with ``row`` in the place of ``axis``."""
        return tuple(row if a == axis else self.rows[a][node] for a in axes)

    def codes(self, end, axes: tuple[int, ...], outgoing: bool) -> Codes:
        """Return the nd-sbp at one end of a value."""
        if isinstance(end, Fixed):
            return tuple(end.codes[a] for a in axes)
        return _codes_of(self.chosen(end[0], axes), end[1], outgoing)


def _codes_of(chosen: tuple[Row, ...], position: int, outgoing: bool) -> Codes:
    return tuple((row.outs if outgoing else row.ins)[position] for row in chosen)


def total_us(problem: Problem, assignment: Assignment) -> float:
    """Return the modelled time of a plan: nodes, then conversions with shared ones paid once."""
    axes = assignment.axes
    total = problem.standing_us
    for node, group in enumerate(problem.graph.nodes):
        total += group.count * problem.node_us(node, assignment.chosen(node, axes), axes)
    for value, count in problem.graph.values.items():
        source = assignment.codes(value.source, axes, True)
        wanted = [assignment.codes(r, axes, False) for r in value.readers]
        targets = set(wanted) - {source}
        targets |= _summed_once(problem, value, axes, source, targets)
        for target in targets:
            cost, moved = problem.conversion(value, axes, source, target)
            if not problem.model.shares:
                cost *= wanted.count(target)
            elif moved and any(_covers(problem, value, axes, source, u, target) for u in targets):
                continue
            total += count * cost
    if problem.model.memory_us_per_byte:
        total += problem.model.memory_us_per_byte * memory(problem, assignment)
    if problem.memory_bytes is not None:
        total += _OVER_LIMIT_US_PER_BYTE * max(0.0, memory(problem, assignment) - problem.memory_bytes)
    return total


def memory(problem: Problem, assignment: Assignment) -> float:
    """Return the bytes per device of the values alive where the program holds most, and of copies kept there."""
    axes = assignment.axes
    sizes = tuple(problem.sizes[a] for a in axes)
    total = sum(
        count * math.prod(local_shape(v.shape, assignment.codes(v.source, axes, True), sizes)) * v.itemsize
        for v, count in problem.graph.live.items()
    )
    for value, count in problem.graph.kept.items():
        source = assignment.codes(value.source, axes, True)
        for target in {assignment.codes(r, axes, False) for r in value.readers} - {source}:
            if problem.price(value.shape, value.itemsize, axes, source, target)[1]:
                total += count * math.prod(local_shape(value.shape, target, sizes)) * value.itemsize
    return total


def _summed_once(problem: Problem, value: Value, axes, source: Codes, targets: set) -> set:
    """Return the whole sum of a partial value, if its parts along several dims cost more than that.

    A compiler that writes a reduce-scatter as an all-reduce writes two of the same value as one.
    """
    whole = tuple(B if c == P else c for c in source)
    if not problem.model.tiles or whole == source or whole in targets:
        return set()
    parts = [t for t in targets if _covers(problem, value, axes, source, whole, t)]
    apart = sum(problem.conversion(value, axes, source, t)[0] for t in parts)
    return {whole} if apart > problem.conversion(value, axes, source, whole)[0] * (1 + 1e-9) else set()


def _covers(problem: Problem, value: Value, axes, source: Codes, u: Codes, target: Codes) -> bool:
    """Return whether a copy in ``u``, once paid, gives ``target`` without moving a byte."""
    if u == target or problem.price(value.shape, value.itemsize, axes, u, target)[1]:
        return False
    paid = problem.price(value.shape, value.itemsize, axes, source, u)[1]
    return paid > 0 and problem.price(value.shape, value.itemsize, axes, target, u)[1] > 0


@dataclass
class Solution:
    """What HiGHS found.

    Attributes:
        rows: what every node takes: of several axes a row per axis, of one its row.
        bound_us: a lower bound on the cost of every choice among the options.
        integral: whether the relaxation was integral.
        basis: where the solver ended; a later solve of the axis starts there.
    """

    rows: list
    bound_us: float
    integral: bool
    basis: Basis | None = None


def solve_axis(problem: Problem, assignment: Assignment, axis: int, start: Basis | None = None) -> Solution:
    """Return the best rows on ``axis``, the other axes of ``assignment`` staying as they are.

    Args:
        problem: the graph with its prices.
        assignment: rows on the other axes.
        axis: the axis.
        start: where an earlier solve of an axis ended.
    """
    axes = tuple(sorted({*assignment.axes, axis}))
    options = []
    for node in range(len(problem.graph.nodes)):
        every = [assignment.chosen(node, axes, axis, row) for row in problem.rows(node, axis)]
        options.append([c for c in every if problem.legal(node, c, axes)] or every[-1:])
    at = axes.index(axis)
    solution = _Assembly(problem, axes, options, at).solve(start)
    return replace(solution, rows=[chosen[at] for chosen in solution.rows])


def exchange(problem: Problem, assignment: Assignment, first: int, second: int) -> Assignment:
    """Return an assignment of all axes with ``first`` and ``second`` exchanged at the nodes where that is cheapest."""
    axes = assignment.axes
    other = {first: second, second: first}
    options = []
    for node in range(len(problem.graph.nodes)):
        stays = assignment.chosen(node, axes)
        turned = tuple(assignment.rows[other.get(a, a)][node] for a in axes)
        offered = all(turned[axes.index(a)] in problem.rows(node, a) for a in other)
        may = turned != stays and offered and problem.legal(node, turned, axes)
        options.append([stays, turned] if may else [stays])
    found = _Assembly(problem, axes, options).solve().rows
    return Assignment({a: [chosen[place] for chosen in found] for place, a in enumerate(axes)})


class _Assembly:
    """Columns and constraints of a choice among options; an expression is ``([columns], constant)``.

    Args:
        problem: the graph with its prices.
        axes: the axes.
        options: for every node what it may take: a row per axis.
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
        self.constant = problem.standing_us
        self.entries: list[tuple[int, int, float]] = []  # (constraint, column, coefficient)
        self.lower: list[float] = []
        self.upper: list[float] = []
        self.first: list[int] = []
        self._flows: dict = {}
        self._copies: list[tuple] = []  # value, layout, expression: what readers convert for themselves
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
                self._column(group.count * (us + _ORDER_US * place), "row", node, *named)
            columns = range(self.first[node], self.first[node] + len(options))
            self._constrain([(c, 1.0) for c in columns], 1.0, 1.0, "node", node)

    def _name(self, codes: Codes):
        return codes if self.at is None else codes[self.at]

    def _layouts(self, end, outgoing: bool) -> dict[Codes, tuple[list[int], float]]:
        """Return layout → expression of how much an end takes of it."""
        if isinstance(end, Fixed):
            return {tuple(end.codes[a] for a in self.axes): ([], 1.0)}
        node, position = end
        found: dict[Codes, tuple[list[int], float]] = {}
        for i, chosen in enumerate(self.options[node]):
            found.setdefault(_codes_of(chosen, position, outgoing), ([], 0.0))[0].append(self.first[node] + i)
        return {next(iter(found)): ([], 1.0)} if len(found) == 1 else found

    def _flow(self, value: Value, reader) -> dict[tuple[Codes, Codes], tuple[list[int], float]]:
        """Return ``(s, t)`` → expression of the flow from a value's source to one of its readers."""
        key = (value.source, reader)
        found = self._flows.get(key)
        if found is None:
            sources, targets = self._layouts(value.source, True), self._layouts(reader, False)
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
                cost, moved = self.problem.conversion(value, self.axes, source, target)
                if moved and self.problem.model.shares:
                    shared.setdefault(source, {}).setdefault(target, []).append((reader, flow))
                elif cost:
                    self._charge(flow, count * cost)
        for source, wanted in shared.items():
            self._share(number, value, count, source, wanted)

    def _share(self, number: int, value: Value, count: int, source: Codes, wanted: dict[Codes, list]) -> None:
        """Charge the conversions of one source layout, each once however many readers want it.

        ``wanted`` has for every target layout ``(reader, flow)`` pairs. A copy that gives another target for free
        (all-gathered once, sliced by someone else) may carry that reader's flow too; what one reader sends through a
        copy, all targets together, is at most the copy.
        """
        covers = {t: [u for u in wanted if _covers(self.problem, value, self.axes, source, u, t)] for t in wanted}
        used = {u for found in covers.values() for u in found}
        paid: dict[Codes, int] = {}
        names = self._names_of(number, source, wanted)
        for target, flows in wanted.items():
            cost = count * self.problem.conversion(value, self.axes, source, target)[0]
            if len(flows) == 1 and not covers[target] and target not in used:
                self._charge(flows[0][1], cost)
                self._copies.append((value, target, flows[0][1]))
            else:
                paid[target] = self._column(cost, "paid", *names[target])
                self._copies.append((value, target, ([paid[target]], 0.0)))
        through: dict = {}  # (copy, reader) → columns of what the reader takes from that copy for other targets
        for target, column in paid.items():
            for reader, (columns, constant) in wanted[target]:
                terms = [(column, 1.0), *((c, -1.0) for c in columns)]
                for u in covers[target]:
                    detour = self._column(0.0, "detour", *names[target], *names[u], reader)
                    through.setdefault((u, reader), []).append(detour)
                    terms.append((detour, 1.0))
                self._constrain(terms, constant, math.inf, "copy", *names[target], reader)
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
        held: list[tuple] = []  # bytes and expressions
        for value, count in self.problem.graph.live.items():
            for codes, expression in self._layouts(value.source, True).items():
                held.append((count * math.prod(local_shape(value.shape, codes, sizes)) * value.itemsize, expression))
        for value, target, expression in self._copies:
            count = self.problem.graph.kept.get(value, 0)
            if count:
                held.append((count * math.prod(local_shape(value.shape, target, sizes)) * value.itemsize, expression))
        for nbytes, expression in held:
            self._charge(expression, nbytes * self.problem.model.memory_us_per_byte)
        if self.problem.memory_bytes is None:
            return
        limit = self.problem.memory_bytes
        scale = 1 / max(limit, 1.0)
        self._slack = self._column(_OVER_LIMIT_US_PER_BYTE / scale, "slack")
        terms = [(c, nbytes * scale) for nbytes, (columns, _) in held for c in columns]
        fixed = sum(nbytes * constant for nbytes, (_, constant) in held)
        self._constrain([*terms, (self._slack, -1.0)], -math.inf, (limit - fixed) * scale, "memory")

    def solve(self, start: Basis | None = None) -> Solution:
        """Run HiGHS: the relaxation first, branch and bound only if it is not integral."""
        if not self.cost:
            return Solution([], self.constant, True)
        cost = np.asarray(self.cost)
        positive = cost[cost > 0]
        scale = 1.0 / float(np.median(positive)) if positive.size else 1.0
        program = self._linear(cost * scale)
        relaxed = solve(program, start)
        bound = relaxed.cost / scale + self.constant if relaxed.x is not None else -math.inf
        chosen = relaxed.x
        integral = chosen is not None and all(
            chosen[a : a + len(o)].max() > 1 - _INTEGRAL for a, o in zip(self.first, self.options)
        )
        if not integral:
            whole = np.zeros(len(cost))
            for a, options in zip(self.first, self.options):
                whole[a : a + len(options)] = 1
            result = branched(program, whole, {"mip_rel_gap": _GAP, "node_limit": _NODES})
            chosen = result.x if result.x is not None else chosen
            bound = max(bound, (result.mip_dual_bound or -math.inf) / scale + self.constant)
        if chosen is None:  # the solver gave up: every choice is feasible, so broadcast everywhere is one
            return Solution([o[-1] for o in self.options], bound, False)
        found = [o[int(np.argmax(chosen[a : a + len(o)]))] for a, o in zip(self.first, self.options)]
        return Solution(found, bound, integral, relaxed.basis)

    def _linear(self, cost: np.ndarray) -> Linear:
        from scipy.sparse import csr_matrix

        row, column, value = zip(*self.entries)
        matrix = csr_matrix((value, (row, column)), shape=(len(self.lower), len(cost)))
        bound = np.ones(len(cost))
        if self._slack is not None:
            bound[self._slack] = np.inf
        return Linear(cost, bound, matrix, np.asarray(self.lower), np.asarray(self.upper), self.names, self.constraints)
