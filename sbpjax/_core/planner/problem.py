"""Planning problem: the priced graph, and the modelled time of an assignment of strategies.

Prices are whole: a node is priced by its strategies on all decided axes, a conversion along its path over them.
`total_us` adds up a choice as the lowering will make it; the linear program (`linear`) is written from the same prices.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from sbpjax._core.planner.memory.input_output_traffic import stored_operands
from sbpjax._core.planner.prices.cost import CostModel, products_us
from sbpjax._core.planner.prices.local_work import local_bytes
from sbpjax._core.planner.prices.slack import VISIBLE
from sbpjax._core.programs.plan import Codes
from sbpjax._core.programs.rules import Strategy, is_refused, jointly_legal, moved_inside, strategies_of
from sbpjax.sbp import boxing, even_split
from sbpjax.sbp.algebra import B, P
from sbpjax.sbp.layout import axes_of_dims, local_shape

from .exact import equation_traffic_bytes
from .graph import Fixed, Graph, Group, Value
from .loop_boundary import port_strategies

# The price of a byte above the memory limit: far more than moving it.
OVER_LIMIT_US_PER_BYTE = 1.0
# The penalty of a strategy that an equation rejects, in multiples of its time and that of moving its operands.
_REFUSED = 10.0
# A tie-break between the dims that a returned value may be split along.
_TIE_US = 1e-4
# The price of a byte of a loop's stack, as a share of moving it: less than any moved byte, but enough to prefer a
# divided stack to a whole one.
_HELD = 1e-3
# Primitives that write one tensor into another.
_WRITES = frozenset({"dynamic_update_slice", "scatter"})


@dataclass
class Problem:
    """The graph with its prices, shared by all axes."""

    graph: Graph
    sizes: Codes
    model: CostModel
    memory_bytes: float | None = None

    def __post_init__(self) -> None:
        self._strategies: dict = {}
        self._work: dict = {}
        self._hidden: dict = {}
        self._tiled: dict = {}
        # Launch → the number of its members in the previous plan: each is charged its share. Of others, all of the
        # group: then no plan is charged more than it costs, and a linear program bounds all plans from below.
        self.sharers: Mapping[tuple, int] = MappingProxyType({})

    def strategies(self, node: int, axis: int) -> list[Strategy]:
        """Return the strategies of a node on an axis."""
        group = self.graph.nodes[node]
        # With the axis: a pin has other strategies on every axis, and axes differ in which dims divide evenly.
        key = (group.form if group.form >= 0 else _key_of(group), axis)
        found = self._strategies.get(key)
        if found is None:
            if group.form >= 0:
                found = strategies_of(self.graph.forms.examples[group.form], self.sizes[axis], axis)
            elif group.port is not None:
                found = port_strategies(group.port, group.aval)
            else:
                # P is left out: parameters are never kept as partial sums.
                dims = [d for d, n in enumerate(group.aval.shape) if n > 1 and d not in group.whole]
                codes = [*(d for d in dims if not group.even or group.aval.shape[d] % self.sizes[axis] == 0), B]
                found = [Strategy((c,) if group.returned else (), (c,)) for c in codes]
            self._strategies[key] = found
        return found

    def legal(self, node: int, chosen: tuple[Strategy, ...], axes: tuple[int, ...]) -> bool:
        """Return whether strategies chosen for the axes ``axes`` go together."""
        group = self.graph.nodes[node]
        sizes = self._sizes(axes)
        if group.form < 0:
            return not group.even or _is_even(group.aval.shape, codes_of(chosen, 0, True), sizes)
        return jointly_legal(self.graph.forms.examples[group.form], chosen, sizes)

    def node_us(self, node: int, chosen: tuple[Strategy, ...], axes: tuple[int, ...]) -> float:
        """Return the time of one member of a node under strategies chosen for ``axes``."""
        group = self.graph.nodes[node]
        if group.form < 0:
            return self._stack_tie_break_us(group, chosen, axes)
        eqn = self.graph.forms.examples[group.form]
        work = self._work.get(group.form)
        if work is None:
            work = self._work[group.form] = self.model.equation_us(eqn)
        # A strategy without a split does its work on every rank: this keeps large products divided.
        share = math.prod(
            self.sizes[a] for a, strategy in zip(axes, chosen) if any(c >= 0 for c in (*strategy.ins, *strategy.outs))
        )
        own = self._tiled_us(node, chosen, axes, work, share) if self.model.tiles else work / share
        own += self._stored_us(node, chosen, axes)
        if is_refused(eqn, chosen, axes):
            own += _REFUSED * (work + self.model.interconnect_us(sum(_nbytes(v.aval) for v in eqn.invars)))
        return own + self._inner_us(node, chosen, axes) + self._output_gather_us(node, chosen, axes)

    def _tiled_us(
        self, node: int, chosen: tuple[Strategy, ...], axes: tuple[int, ...], work: float, share: int
    ) -> float:
        """Return the time of an equation by one device's HBM traffic; see `_core.planner.prices.local_work`."""
        form = self.graph.nodes[node].form
        key = (form, chosen, axes)
        found = self._tiled.get(key)
        if found is None:
            eqn = self.graph.forms.examples[form]
            ins, outs = (tuple(zip(*(getattr(strategy, side) for strategy in chosen))) for side in ("ins", "outs"))
            traffic = local_bytes(eqn, ins, outs, self._sizes(axes))
            # A pointwise equation is fused with its neighbours: its HBM traffic is not its own to pay.
            if traffic is None:
                found = work / share
            else:
                products = products_us(self.model, eqn) / share
                found = self.model.compute_ratio * max(products, self.model.memory_us(traffic))
            self._tiled[key] = found
        return found

    def _inner_us(self, node: int, chosen: tuple[Strategy, ...], axes: tuple[int, ...]) -> float:
        """Return the time that one member of a node moves data inside itself; on unlike links, axis by axis."""
        total = self.inner_bytes(node, chosen, axes)
        if not total:
            return 0.0
        # Each step of a ring waits for the one before; reductions go together.
        moved = moved_inside(self.graph.forms.examples[self.graph.nodes[node].form], chosen, self._sizes(axes))
        steps = sum((m.launches - 1) * self.model.link(axes[m.axis]).alpha_us for m in moved if m.kind == "ppermute")
        return steps + self._inner_bytes_us(node, chosen, axes, total)

    def _inner_bytes_us(self, node: int, chosen: tuple[Strategy, ...], axes: tuple[int, ...], total: int) -> float:
        if not self.model.links:
            return self.model.interconnect_us(total)
        single = []
        for a in axes:
            alone = tuple(r if b == a else self.strategies(node, b)[-1] for b, r in zip(axes, chosen))
            single.append(self.inner_bytes(node, alone, axes))
        known = sum(single) or 1  # an axis alone moves the bytes of the whole, so only the shares are taken
        return sum(self.model.interconnect_us(total * part / known, a) for a, part in zip(axes, single))

    def _sizes(self, axes: tuple[int, ...]) -> Codes:
        return tuple(self.sizes[a] for a in axes)

    @functools.cached_property
    def _stored_operands(self) -> dict:
        return stored_operands(self.graph) if self.model.tiles else {}

    def _stored_us(self, node: int, chosen: tuple[Strategy, ...], axes: tuple[int, ...]) -> float:
        """Return the time of one member of a node to read inputs and write new state; see `input_output_traffic`."""
        found = self._stored_operands.get(node, ())
        return self.model.memory_us(sum(t.bytes(chosen, self._sizes(axes)) for t in found)) if found else 0.0

    def _stack_tie_break_us(self, group: Group, chosen: tuple[Strategy, ...], axes: tuple[int, ...]) -> float:
        """Return the tie-break between layouts of a loop's stacks: the bytes of one device."""
        # A stack that is gathered before its loop, or reduced after it, moves as much as its slices do inside.
        if group.port not in ("sliced", "stacked"):
            return 0.0
        codes = tuple((strategy.outs if group.port == "sliced" else strategy.ins)[0] for strategy in chosen)
        # All iterations: it is the stack that a device holds, not a slice.
        slice_bytes = math.prod(local_shape(group.aval.shape, codes, self._sizes(axes)))
        return _HELD * self.model.interconnect_us(slice_bytes * group.aval.dtype.itemsize * group.iterations)

    def _output_gather_us(self, node: int, chosen: tuple[Strategy, ...], axes: tuple[int, ...]) -> float:
        """Return the time to gather results of a node that are divided or partial where every input is broadcast."""
        # The caller gave no layout there, so the gather that a divided result puts off is charged to the plan that
        # divides it. Among equals the first dim is split, on N-D placements the last, as eager ops do.
        total = 0.0
        is_write = self.graph.equation(node).primitive.name in _WRITES
        for position, shape, itemsize in self.graph.returned.get(node, ()):
            codes = tuple(strategy.outs[position] for strategy in chosen)
            # A write into a tensor, as partial sums, moves nothing, but would return a divided tensor whole.
            whole = tuple(B if a in self.graph.unpinned or is_write and c == P else c for a, c in zip(axes, codes))
            # A sum that is left partial is free here and costs a gather wherever it is read.
            total += self.price(shape, itemsize, axes, codes, whole)[0]
            total += _TIE_US * sum(_rank_of(c, len(shape), len(self.sizes)) for c in codes)
        return total

    def inner_bytes(self, node: int, chosen: tuple[Strategy, ...], axes: tuple[int, ...]) -> int:
        """Return the bytes that one member of a node moves inside itself."""
        form = self.graph.nodes[node].form
        key = (form, chosen, axes)
        found = self._hidden.get(key)
        if found is None:
            eqn = self.graph.forms.examples[form]
            found = self._hidden[key] = equation_traffic_bytes(eqn, chosen, self._sizes(axes))
        return found

    @functools.cached_property
    def price(self):
        """Return ``(shape, itemsize, axes, source, target) → (µs, bytes)`` of a conversion."""

        # Inside the property, and not on a method: the cache is the problem's own and goes with it.
        @functools.cache
        def price(shape, itemsize: int, axes, source: Codes, target: Codes) -> tuple[float, int]:
            if source == target:
                return 0.0, 0
            sizes = self._sizes(axes)
            steps = boxing.path(shape, itemsize, sizes, source, target)
            block = math.prod(local_shape(shape, target, sizes)) * itemsize
            return self.model.on(axes).steps_us(steps, block), sum(s.bytes for s in steps)

        return price

    def conversion(self, value: Value, axes: tuple[int, ...], source: Codes, target: Codes) -> tuple[float, int]:
        """Return the time and bytes of a conversion of a value, less the latency that other work hides.

        Of a collective that is combined with others' it has its share; see `launches`.
        """
        us, moved = self.price(value.shape, value.itemsize, axes, source, target)
        # Only latency hides, as in OneFlow's trunk algorithm: the bytes of all conversions share one interconnect.
        slack = self.graph.slack_us.get(value, 0.0) if self.model.hides and moved else 0.0
        combined = moved and value in self._launch_group_of
        if not slack and not combined:
            return us, moved
        steps = boxing.path(value.shape, value.itemsize, self._sizes(axes), source, target)
        model = self.model.on(axes)
        latency = model.latency_us(steps)
        if combined:
            share = sum(model.share_us(s) for s in steps if s.bytes)
            us, latency = us - latency + share, share
        return us - min(slack, (1 - VISIBLE) * latency), moved

    @property
    def combines(self) -> bool:
        """Whether launches that the compiler combines are charged once."""
        return bool(self.model.combines) and self.model.alpha_us > 0

    @functools.cached_property
    def _launch_group_of(self) -> dict:
        return self.graph.apart if self.combines else {}

    def launches(self, value: Value, axes: tuple[int, ...], source: Codes, target: Codes) -> set[tuple]:
        """Return the combined collectives that a conversion of a value uses: group, kind of step and axis of each."""
        group = self._launch_group_of.get(value)
        if group is None or not self.price(value.shape, value.itemsize, axes, source, target)[1]:
            return set()
        steps = boxing.path(value.shape, value.itemsize, self._sizes(axes), source, target)
        return {(group, s.kind, axes[s.axis]) for s in steps if self.model.is_combined(s)}

    def launch_share_us(self, launch: tuple) -> float:
        """Return the charge of a linear program for one member's launch; see `sharers`."""
        return self.launch_us(launch) / self.sharers.get(launch, self._members[launch[0]])

    @functools.cached_property
    def _members(self) -> Counter:
        """The number of members of the values of each group."""
        found: Counter = Counter()
        for value, group in self._launch_group_of.items():
            found[group] += self.graph.values[value]
        return found

    def launch_us(self, launch: tuple) -> float:
        """Return the latency of one of the collectives that `launches` names, in all runs of the loop it is in."""
        (_, times), _, axis = launch
        return times * self.model.link(axis).alpha_us


def _nbytes(aval) -> int:
    return math.prod(aval.shape) * aval.dtype.itemsize


def _key_of(group: Group) -> tuple:
    return group.port, group.aval.shape, str(group.aval.dtype), group.returned, group.whole, group.even


def _is_even(shape: tuple[int, ...], codes: Codes, sizes: Codes) -> bool:
    splits = enumerate(axes_of_dims(codes, len(shape)))
    return all(even_split.even(shape[dim], tuple(sizes[a] for a in axes)) for dim, axes in splits if axes)


def _rank_of(code: int, ndim: int, axes: int) -> int:
    """Return the place of a code among equals: broadcast, then the dims (on N-D the last first), then partial."""
    return 0 if code == B else ndim + 1 if code < 0 else code + 1 if axes == 1 else ndim - code


class Assignment:
    """Rows of every node on some of the axes.

    Attributes:
        axes: the axes that are decided.
        strategies: axis → a strategy per node.
    """

    def __init__(self, strategies: dict[int, list[Strategy]]) -> None:
        self.strategies = strategies

    @property
    def axes(self) -> tuple[int, ...]:
        """The decided axes, outer first."""
        return tuple(sorted(self.strategies))

    def strategies_of(
        self, node: int, axes: tuple[int, ...], axis: int | None = None, strategy: Strategy | None = None
    ) -> tuple:
        """Return the strategies of a node on ``axes``, with ``strategy`` in the place of ``axis``."""
        return tuple(strategy if a == axis else self.strategies[a][node] for a in axes)

    def codes(self, end, axes: tuple[int, ...], outgoing: bool) -> Codes:
        """Return the nd-sbp at one end of a value."""
        if isinstance(end, Fixed):
            return tuple(end.codes[a] for a in axes)
        return codes_of(self.strategies_of(end[0], axes), end[1], outgoing)


def codes_of(chosen: tuple[Strategy, ...], position: int, outgoing: bool) -> Codes:
    """Return the nd-sbp of an operand, or of an output, of a node with the strategies ``chosen``."""
    return tuple((strategy.outs if outgoing else strategy.ins)[position] for strategy in chosen)


def total_us(problem: Problem, assignment: Assignment) -> float:
    """Return the modelled time of a plan: nodes, then conversions with shared ones paid once, and combined launches."""
    axes = assignment.axes
    total = sum(map(problem.launch_us, combined_launches(problem, assignment)))
    for node, group in enumerate(problem.graph.nodes):
        total += group.count * problem.node_us(node, assignment.strategies_of(node, axes), axes)
    for value, source, target, count in _paid_conversions(problem, assignment):
        total += count * problem.conversion(value, axes, source, target)[0]
    if problem.model.memory_us_per_byte:
        total += problem.model.memory_us_per_byte * memory(problem, assignment)
    if problem.memory_bytes is not None:
        total += OVER_LIMIT_US_PER_BYTE * max(0.0, memory(problem, assignment) - problem.memory_bytes)
    return total


def _paid_conversions(problem: Problem, assignment: Assignment) -> Iterator[tuple[Value, Codes, Codes, int]]:
    """Yield every paid conversion of a plan: value, source, target, and count."""
    axes = assignment.axes
    for value, count in problem.graph.values.items():
        source = assignment.codes(value.source, axes, True)
        wanted = [assignment.codes(r, axes, False) for r in value.readers]
        targets = set(wanted) - {source}
        targets |= _summed_once(problem, value, axes, source, targets)
        for target in targets:
            moved = problem.price(value.shape, value.itemsize, axes, source, target)[1]
            # OneFlow's collector off: priced as if every reader converted; the lowering shares all the same.
            if not problem.model.shares:
                yield value, source, target, count * wanted.count(target)
            elif not moved or not any(converts_for_free(problem, value, axes, source, u, target) for u in targets):
                yield value, source, target, count


def combined_launches(problem: Problem, assignment: Assignment) -> Counter:
    """Return the combined launches of a plan, with the number of members of values in each."""
    found: Counter = Counter()
    if problem.combines:
        for value, source, target, count in _paid_conversions(problem, assignment):
            for launch in problem.launches(value, assignment.axes, source, target):
                found[launch] += count
    return found


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
    """Return the whole sum of a partial value, if its parts along several dims cost more than that."""
    # A compiler that writes a reduce-scatter as an all-reduce writes two of the same value as one.
    whole = tuple(B if c == P else c for c in source)
    if not problem.model.tiles or whole == source or whole in targets:
        return set()
    parts = [t for t in targets if converts_for_free(problem, value, axes, source, whole, t)]
    apart = sum(problem.conversion(value, axes, source, t)[0] for t in parts)
    return {whole} if apart > problem.conversion(value, axes, source, whole)[0] * (1 + 1e-9) else set()


def converts_for_free(problem: Problem, value: Value, axes, source: Codes, u: Codes, target: Codes) -> bool:
    """Return whether a copy in ``u``, once paid, gives ``target`` without moving a byte."""
    if u == target or problem.price(value.shape, value.itemsize, axes, u, target)[1]:
        return False
    paid = problem.price(value.shape, value.itemsize, axes, source, u)[1]
    return paid > 0 and problem.price(value.shape, value.itemsize, axes, target, u)[1] > 0
