"""Planner of whole programs: a traced training step, with pins where the user gave layouts.

Data parallelism is a pin (the batch is split, the parameters are broadcast) and the rest follows: the contraction
strategy of the weight gradient gives a partial sum, the optimizer needs a broadcast one, so one all-reduce per
parameter is planned, at the place where it costs least.

`plan_program` builds the graph of the program once (repeated layers tied), solves the linear program of one mesh axis
after the other in alternation, and where that has converged lets parts of the program exchange two axes; from several
starts, the plan for one axis of all ranks among them, of which it keeps the cheapest plan. Everything is deterministic.
"""

from __future__ import annotations

import dataclasses
import itertools
import logging
import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from sbpjax._core.jax_private import Literal
from sbpjax._core.planner.memory.limit import fastest_within, live_at_peak, peak_bytes
from sbpjax._core.planner.prices.cost import DEFAULT, CostModel
from sbpjax._core.planner.prices.slack import slack_us
from sbpjax._core.programs.normalise import Program
from sbpjax._core.programs.plan import Codes, Plan
from sbpjax._core.programs.rules import Strategy
from sbpjax.sbp.algebra import B

from .graph import Fixed, Graph, build
from .linear import Solution, exchange, solve_axis
from .loop_boundary import Loop, Region
from .problem import Assignment, Problem, combined_launches, total_us
from .solver import Basis

log = logging.getLogger("sbpjax.plan")

# Alternation converges in two or three rounds; starts differ in the order of the axes. A start that begins well above
# the best plan so far is not followed further.
_ROUNDS = 6
_STARTS = 4
# A large program takes seconds per axis and start, and starts differ by a percent or less: two where inputs are free.
_LARGE_NODES = 500
_SETTLED = 5e-4
_HOPELESS = 0.05
# The number of times that an axis is solved again with updated shares of each launch.
_SHARINGS = 2


def plan_program(
    program: Program,
    sizes: Codes,
    in_codes: Sequence[Codes | None],
    out_pins: Sequence | None = None,
    *,
    free_inputs: Sequence[int] = (),
    whole_dims: Mapping[int, Sequence[int]] = MappingProxyType({}),
    cost: CostModel = DEFAULT,
    memory_bytes: float | None = None,
    device: str = "",
    even: bool = False,
) -> Plan:
    """Return the cheapest plan found for a traced program.

    Args:
        program: the flat program.
        sizes: the placement's hierarchy.
        in_codes: the nd-sbp of every input; ignored for free ones.
        out_pins: for every output its nd-sbp, None where the planner is free, or an input's position: the output comes
            back in the layout of that input (an updated parameter).
        free_inputs: positions of inputs whose layout the planner chooses.
        whole_dims: position of a free input → dims of it that stay whole.
        cost: the prices; ``cost.alpha_us == 0`` compares conversions by bytes.
        memory_bytes: the memory limit of one device; None for no limit.
        device: the type of the devices: peak memory depends on their compiler.
        even: whether free inputs and outputs divide evenly, and no output is a partial sum, as `jax.jit` requires of
            shardings.

    Returns:
        The plan; ``plan.gap`` is its relative distance to the lower bound of the last linear program of each axis.
    """
    out_pins = tuple(out_pins) if out_pins is not None else (None,) * len(program.outvars)
    # The graph is built once: a memory limit takes a dozen plans of it at other prices.
    graph = build(program, tuple(in_codes), out_pins, free_inputs, (B,) * len(sizes), whole_dims, even)
    if cost.hides:
        _find_slack(graph, sizes, cost)
    plain = Problem(graph, tuple(sizes), cost)

    def solve(prices: CostModel, limit: float | None = None) -> tuple[Plan, float]:
        """Return the cheapest plan at some prices, and its time apart from the price of memory."""
        if prices.memory_us_per_byte or limit is not None:
            if not graph.live:
                _note_live(graph, *live_at_peak(program, None, device))
        problem = plain if prices is cost and limit is None else Problem(graph, tuple(sizes), prices, limit)
        best, best_us, bound = _search(problem)
        gap = max(0.0, 1 - bound / best_us) if best_us > 0 else 0.0
        if problem is not plain:
            # Without the price of memory, or plans made at different prices could not be compared.
            best_us = total_us(plain, best)
        return _plan(plain, best, in_codes, out_pins, gap, best_us), best_us

    if memory_bytes is None:
        return solve(cost)[0]
    return fastest_within(
        solve,
        lambda plan: _note_live(graph, *live_at_peak(program, plan, device)),
        lambda plan: peak_bytes(plan, out_pins, device),
        cost,
        memory_bytes,
    )


def _note_live(graph: Graph, live: set, kept: set) -> None:
    """Add the live values of a moment to those that memory's price counts."""
    for value, members in graph.variables.items():
        for table, names in ((graph.live, live), (graph.kept, kept)):
            count = sum(v in names for v in members)
            if count:
                table[value] = max(count, table.get(value, 0))


def _find_slack(graph: Graph, sizes: Codes, cost: CostModel) -> None:
    """Note the time that readers of values can wait, if every equation is divided over all ranks."""
    ranks = math.prod(sizes)
    times: dict[int, float] = {}

    def equation_us(eqn) -> float:
        # By identity, which is at hand; the form of an equation would have to be computed first.
        found = times.get(id(eqn))
        if found is None:
            found = times[id(eqn)] = cost.equation_us(eqn) / ranks
        return found

    slack = slack_us(graph.region.program, equation_us)
    graph.slack_us = {
        value: least
        for value, members in graph.variables.items()
        if (least := min(slack.get(v, 0.0) for v in members)) > 0
    }


def _search(problem: Problem) -> tuple[Assignment, float, float]:
    """Return the best plan of all starts, its modelled time and the lower bound on its axes."""
    axes = len(problem.sizes)
    results = []
    # A GPT of 816 nodes takes 5.3 s with one start and 7.6 s with two, to the same plan.
    starts = _STARTS if len(problem.graph.nodes) < _LARGE_NODES else 2 if problem.graph.node_of_input else 1
    ends: dict = {}  # of each axis the basis of its last solve; the first of an axis starts from the one before
    for order in list(itertools.permutations(range(axes)))[:starts]:
        best_us = min((us for _, us, _ in results), default=math.inf)
        results.append(_descend(problem, order, best_us * (1 + _HOPELESS), ends))
        log.debug("axes in the order %s: %.3f us", order, results[-1][1])
    # With all inputs given there is little left to choose: not worth a start of its own.
    alike = _uniform_plan(problem) if axes > 1 and problem.graph.node_of_input else None
    if alike is not None:
        best_us = min(us for _, us, _ in results)
        results.append(_alternate(problem, alike, tuple(range(axes)), best_us * (1 + _HOPELESS), ends, {}))
        log.debug("axes that begin alike: %.3f us", results[-1][1])
    return min(results, key=lambda result: result[1])


def _descend(
    problem: Problem, order: tuple[int, ...], give_up_us: float, ends: dict
) -> tuple[Assignment, float, float]:
    """Solve axis after axis in ``order``, each given those before it, and then in rounds."""
    assignment = Assignment({})
    bounds: dict[int, float] = {}
    basis = None
    for axis in order:
        # The basis of another axis is a better start than none: axes want much the same of most equations.
        solution = _best_of_axis(problem, assignment, axis, ends.get(axis, basis))
        assignment = Assignment({**assignment.strategies, axis: solution.strategies})
        bounds[axis], ends[axis] = solution.bound_us, solution.basis
        basis = solution.basis
    return _alternate(problem, assignment, order, give_up_us, ends, {order[-1]: bounds[order[-1]]})


def _best_of_axis(problem: Problem, others: Assignment, axis: int, start: Basis | None) -> Solution:
    """Return the best strategies on an axis, the launches that several values go by charged to those that do."""
    problem.sharers = {}
    solution = best = solve_axis(problem, others, axis, start)
    if not problem.combines:
        return best
    bound = solution.bound_us  # without sharers no plan is charged more than it costs
    best_us = math.inf
    for _ in range(_SHARINGS):
        found = Assignment({**others.strategies, axis: solution.strategies})
        us, sharers = total_us(problem, found), combined_launches(problem, found)
        if us >= best_us * (1 - _SETTLED):
            break
        best, best_us = solution, us
        # A conversion that goes alone pays the whole launch, which is not known before there is a plan.
        if all(problem.launch_share_us(launch) * n >= problem.launch_us(launch) for launch, n in sharers.items()):
            break
        problem.sharers = {**problem.sharers, **sharers}
        solution = solve_axis(problem, others, axis, solution.basis)
    problem.sharers = {}
    return dataclasses.replace(best, bound_us=bound)


def _alternate(
    problem: Problem,
    assignment: Assignment,
    order: tuple[int, ...],
    give_up_us: float,
    ends: dict,
    bounds: dict[int, float],
) -> tuple[Assignment, float, float]:
    """Solve axis after axis, each given the others, until neither an axis nor an exchange of two improves.

    Args:
        problem: the problem.
        assignment: strategies of all axes to begin with.
        order: of the axes.
        give_up_us: above which modelled time it is not worth while.
        ends: of each axis the basis of its last solve.
        bounds: of the axes that are optimal given the others, the last ones of the order, the lower bound.
    """
    us, stale = total_us(problem, assignment), len(bounds)
    for axis in itertools.islice(itertools.cycle(order), _ROUNDS * len(order)):
        if us > give_up_us and bounds:
            break
        # Alternation can end with a part of the program on swapped axes, its tokens over tensor and its hidden units
        # over data: neither axis can fix it without the other.
        if stale >= len(order):
            exchanged = _exchange_axes(problem, assignment, us)
            if exchanged is None:
                break
            (assignment, us), stale = exchanged, 0
        others = Assignment({a: r for a, r in assignment.strategies.items() if a != axis})
        solution = _best_of_axis(problem, others, axis, ends[axis])
        bounds[axis], ends[axis] = solution.bound_us, solution.basis
        candidate = Assignment({**others.strategies, axis: solution.strategies})
        after = total_us(problem, candidate)
        # 1, not 0: the axis that has just been solved is optimal given the others.
        stale = stale + 1 if after > us * (1 - _SETTLED) else 1
        if after < us:
            assignment, us = candidate, after
    return assignment, us, min(bounds.values())


def _uniform_plan(problem: Problem) -> Assignment | None:
    """Return the plan for one axis of all ranks, laid along every axis; None where a pin differs between axes."""
    # ``S0`` over eight ranks is ``(S0, S0)`` over two times four. Axis by axis one comes to such a plan only if each
    # step on the way pays.
    graph, axes = problem.graph, range(len(problem.sizes))
    ends = (end for value in graph.values for end in (value.source, *value.readers))
    if any(isinstance(end, Fixed) and len(set(end.codes)) > 1 for end in ends):
        return None
    # The links of the mesh axes do not apply to an axis over all ranks.
    sizes = (math.prod(problem.sizes), *(1 for _ in axes[1:]))
    line = Problem(graph, sizes, dataclasses.replace(problem.model, links=()))
    strategies: dict[int, list[Strategy]] = {a: [] for a in axes}
    for node, strategy in enumerate(solve_axis(line, Assignment({}), 0, None).strategies):
        chosen: tuple[Strategy, ...] = ()
        # A strategy that does not go with those of the outer axes falls back to broadcast; alternation then starts from
        # there.
        for a in axes:
            every = problem.strategies(node, a)
            fits = strategy in every and problem.legal(node, (*chosen, strategy), tuple(range(a + 1)))
            chosen = (*chosen, strategy if fits else every[-1])
            strategies[a].append(chosen[-1])
    return Assignment(strategies)


def _exchange_axes(problem: Problem, assignment: Assignment, us: float) -> tuple[Assignment, float] | None:
    """Return the best exchange of two axes and its modelled time, None if none improves on ``us``."""
    found = [exchange(problem, assignment, *pair) for pair in itertools.combinations(assignment.axes, 2)]
    after, place = min(((total_us(problem, f), i) for i, f in enumerate(found)), default=(math.inf, 0))
    log.debug("axes exchanged: %.3f us, %.3f us before", after, us)
    return (found[place], after) if after < us * (1 - _SETTLED) else None


def _plan(problem: Problem, assignment: Assignment, in_codes, out_pins, gap: float, us: float) -> Plan:
    graph: Graph = problem.graph
    program = graph.region.program
    codes = list(in_codes)
    for i, node in graph.node_of_input.items():
        codes[i] = assignment.codes((node, 0), assignment.axes, True)
    strategies, bodies, inner = _strategies(problem, assignment, graph.region)
    everywhere = (B,) * len(problem.sizes)
    produced = dict.fromkeys(program.consts, everywhere)
    produced.update(zip(program.invars, codes))
    for eqn, chosen in zip(program.eqns, strategies):
        produced.update(zip(eqn.outvars, zip(*(r.outs for r in chosen))))
    out_codes = []
    for i, (v, pin) in enumerate(zip(program.outvars, out_pins)):
        if isinstance(pin, int):
            pin = codes[pin]
        elif i in graph.node_of_output:
            pin = assignment.codes((graph.node_of_output[i], 0), assignment.axes, False)
        out_codes.append(pin or (everywhere if isinstance(v, Literal) else produced[v]))
    return Plan(
        program,
        problem.sizes,
        tuple(codes),
        strategies,
        tuple(out_codes),
        inner,
        gap=gap,
        modelled_us=us,
        bodies=bodies,
    )


def _strategies(problem: Problem, assignment: Assignment, region: Region) -> tuple[list, dict[int, Plan], int]:
    """Return a strategy per axis for every equation, the plans of loop bodies, and the bytes moved inside equations."""
    axes, sizes = assignment.axes, problem.sizes
    everywhere = (B,) * len(sizes)
    strategies: list[tuple[Strategy, ...]] = []
    bodies: dict[int, Plan] = {}
    inner = 0
    made: dict[int, Plan] = {}
    for i, (eqn, child) in enumerate(zip(region.program.eqns, region.nodes)):
        if child is None:
            strategies.append((Strategy((B,) * len(eqn.invars), (B,) * len(eqn.outvars), divided=False),) * len(sizes))
        elif isinstance(child, Loop):
            ins = [everywhere if end is None else assignment.codes(end, axes, False) for end in child.ins]
            outs = [assignment.codes(end, axes, True) for end in child.outs]
            strategies.append(
                tuple(Strategy(tuple(c[a] for c in ins), tuple(c[a] for c in outs)) for a in range(len(sizes)))
            )
            # Equal loops are tied to one `Loop`, so their bodies are one plan, too.
            if id(child) not in made:
                made[id(child)] = _body(problem, assignment, child)
            bodies[i] = made[id(child)]
            inner += bodies[i].inner_bytes * child.iterations
        else:
            chosen = assignment.strategies_of(child, axes)
            strategies.append(chosen)
            inner += problem.inner_bytes(child, chosen, axes)
    return strategies, bodies, inner


def _body(problem: Problem, assignment: Assignment, loop: Loop) -> Plan:
    everywhere = (B,) * len(problem.sizes)
    axes = assignment.axes
    ins = tuple(everywhere if end is None else assignment.codes(end, axes, True) for end in loop.body_ins)
    outs = tuple(assignment.codes(end, axes, False) for end in loop.body_outs)
    strategies, bodies, inner = _strategies(problem, assignment, loop.region)
    return Plan(loop.region.program, problem.sizes, ins, strategies, outs, inner, bodies=bodies)
