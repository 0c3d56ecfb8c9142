"""Alternation over mesh axes against all axes at once, on programs small enough for that."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_matrix

from sbpjax._core.planner import plan_program
from sbpjax._core.planner.graph import Fixed, build
from sbpjax._core.planner.prices.cost import preset
from sbpjax._core.planner.problem import Assignment, Problem, total_us
from sbpjax._core.programs.normalise import normalise
from tests import models_jax

WORST = 1.02  # of the best plan over both axes


def layer(batch, width, hidden):
    """Return a step of gradient descent on one layer and a head, and its inputs."""

    def step(w, v, x):
        def loss(w, v):
            return jnp.mean((jax.nn.relu(x @ w) @ v) ** 2)

        gw, gv = jax.grad(loss, (0, 1))(w, v)
        return w - 0.1 * gw, v - 0.1 * gv

    shapes = (width, hidden), (hidden, width), (batch, width)
    return step, [jax.ShapeDtypeStruct(s, jnp.float32) for s in shapes]


def table(rows, width, count):
    """Return a step on a table of embeddings, and its inputs."""

    def step(w, ids):
        gw = jax.grad(lambda w: jnp.mean(w[ids].sum(1) ** 2))(w)
        return (w - 0.1 * gw,)

    return step, [jax.ShapeDtypeStruct((rows, width), jnp.float32), jax.ShapeDtypeStruct((count, 4), jnp.int32)]


def best_of_the_product(problem: Problem) -> float:
    """Return the time of the best plan over both axes; a copy that is read through another copy is charged twice."""
    axes, cost, entries, lower, upper, whole = (0, 1), [], [], [], [], []

    def column(us, is_whole=0):
        cost.append(us)
        whole.append(is_whole)
        return len(cost) - 1

    def constrain(terms, low, high):
        entries.extend((len(lower), c, k) for c, k in terms)
        lower.append(low)
        upper.append(high)

    choices = []
    for node, group in enumerate(problem.graph.nodes):
        pairs = itertools.product(problem.strategies(node, 0), problem.strategies(node, 1))
        legal = [p for p in pairs if problem.legal(node, p, axes)]
        choices.append([(p, column(group.count * problem.node_us(node, p, axes), 1)) for p in legal])
        constrain([(c, 1.0) for _, c in choices[-1]], 1.0, 1.0)

    def layouts(end, outgoing):
        if isinstance(end, Fixed):
            return {end.codes: None}
        found = {}
        for pair, c in choices[end[0]]:
            codes = tuple((r.outs if outgoing else r.ins)[end[1]] for r in pair)
            found.setdefault(codes, []).append(c)
        return found

    for value, count in problem.graph.values.items():
        sources, paid = layouts(value.source, True), {}
        for reader in value.readers:
            targets = layouts(reader, False)
            flow = {(s, t): column(0.0) for s in sources for t in targets}
            for side, ends in ((0, sources), (1, targets)):
                for codes, columns in ends.items():
                    terms = [(f, 1.0) for key, f in flow.items() if key[side] == codes]
                    total = 1.0 if columns is None else 0.0
                    constrain([*terms, *((c, -1.0) for c in columns or ())], total, total)
            for (s, t), f in flow.items():
                us, _ = problem.conversion(value, axes, s, t)
                if us:
                    if (s, t) not in paid:
                        paid[s, t] = column(count * us)
                    constrain([(paid[s, t], 1.0), (f, -1.0)], 0.0, np.inf)
    row, col, coefficient = zip(*entries)
    matrix = coo_matrix((coefficient, (row, col)), shape=(len(lower), len(cost))).tocsr()
    scale = 1 / max(cost)
    result = milp(
        np.array(cost) * scale,
        integrality=np.array(whole),
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(matrix, lower, upper),
    )
    assert result.success
    chosen = [max(node, key=lambda pair: result.x[pair[1]])[0] for node in choices]
    return total_us(problem, Assignment({a: [pair[a] for pair in chosen] for a in axes}))


TIED = {
    "batch": lambda: models_jax.mlp(1024, 32, 32, layers=6),
    "hidden": lambda: models_jax.mlp(64, 32, 256, layers=6),
    "gpt": lambda: models_jax.gpt(3, 8, 16, 32, 8, 64),
}


@pytest.mark.parametrize("model", ["batch", "hidden", pytest.param("gpt", marks=pytest.mark.exhaustive)])
def test_tied_layers_with_free_inputs_cost_what_layers_planned_apart_cost(model, monkeypatch):
    step = TIED[model]()
    program = normalise(jax.make_jaxpr(step.fn)(*step.avals))
    pins = [*range(step.state), (-1,)]
    free = [i for i, aval in enumerate(step.avals) if aval.shape]
    codes = [None if aval.shape else (-1,) for aval in step.avals]

    def plan():
        return plan_program(program, (8,), codes, pins, free_inputs=free)

    together = plan()
    graph = build(program, codes, pins, free, (-1,))
    monkeypatch.setattr("sbpjax._core.planner.graph.tie_equations", lambda numbers, *rest: list(range(len(numbers))))
    apart = plan()
    assert len(graph.nodes) < 0.7 * len(build(program, codes, pins, free, (-1,)).nodes)
    assert together.modelled_us == pytest.approx(apart.modelled_us, rel=1e-6)
    assert together.gap <= 1e-4


@pytest.mark.parametrize(
    "step", [layer(64, 8, 256), layer(1024, 32, 32), table(4096, 32, 64)], ids=["hidden", "batch", "table"]
)
@pytest.mark.parametrize("name, sizes", [("h100", (2, 4)), ("oneflow", (2, 2))])
def test_alternation_is_within_two_percent(step, name, sizes):
    fn, avals = step
    program = normalise(jax.make_jaxpr(fn)(*avals))
    pins, free = tuple(range(len(program.outvars))), range(len(avals))
    found = plan_program(program, sizes, [None] * len(avals), pins, free_inputs=free, cost=preset(name))
    graph = build(program, (None,) * len(avals), pins, free, (-1,) * len(sizes))
    best = best_of_the_product(Problem(graph, sizes, preset(name)))
    assert found.modelled_us <= WORST * best
