"""Cutting a row of modules by the planner's prices, against all cuts; and training what was cut so."""

import itertools

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import nn
from sbpjax._core.tracing.signature import TensorSpec
from sbpjax.errors import GraphConfigError
from sbpjax.graph.auto.stages import check_apart, row_costs
from sbpjax.graph.pipeline.stages import balance_unequal_stages
from sbpjax.pipeline import auto_stages
from tests.support import graphs

PLACES = [flow.placement("cpu", [0, 1]), flow.placement("cpu", [2, 3])]
WORDS, WIDTH, BATCH = 512, 64, 64
EXAMPLE = TensorSpec((BATCH,), flow.int64)


def row():
    flow.manual_seed(0)
    blocks = [nn.Sequential(nn.Linear(WIDTH, 32), nn.GELU(), nn.Linear(32, WIDTH)) for _ in range(3)]
    return nn.Sequential(nn.Embedding(WORDS, WIDTH), *blocks, nn.Tanh(), nn.Linear(WIDTH, WORDS))


class Train(graphs.Train):
    loss = staticmethod(graphs.cross_entropy)


def curve(model, places=None):
    """Return the losses of three steps of two micro-batches."""
    rng = np.random.default_rng(0)
    x, y = (flow.tensor(rng.integers(0, WORDS, 2 * BATCH)) for _ in range(2))
    if places is not None:
        x, y = x.to_global(places[0], flow.sbp.broadcast), y.to_global(places[-1], flow.sbp.broadcast)
    graph = Train(model, flow.optim.SGD(model.parameters(), lr=0.5), accumulate=2)
    return np.array([float(np.mean(graph(x, y).numpy())) for _ in range(3)])


def test_cuts_of_unlike_stages_are_the_best_ones():
    rng = np.random.default_rng(0)
    for _ in range(30):
        count = int(rng.integers(3, 8))
        stages = int(rng.integers(1, min(4, count) + 1))
        costs, links = rng.uniform(1, 20, (stages, count)), rng.uniform(0, 9, (stages, count))

        def worst(ends, costs=costs, links=links, count=count):
            bounds = itertools.pairwise([0, *ends, count])
            return max(costs[s, a:b].sum() + links[s, a] for s, (a, b) in enumerate(bounds))

        found = balance_unequal_stages(costs.tolist(), links.tolist())
        chosen = [found.index(s) for s in range(1, stages)]
        every = itertools.combinations(range(1, count), stages - 1)
        assert worst(chosen) == pytest.approx(min(map(worst, every)))


def test_equal_modules_cost_the_same_and_are_planned_once(monkeypatch):
    from sbpjax.graph.auto import stages

    planned, plan = [], stages._planned_us
    monkeypatch.setattr(stages, "_planned_us", lambda row, spec: planned.append(spec) or plan(row, spec))
    model = row()
    times, links = row_costs(list(model), PLACES, EXAMPLE)
    assert len(planned) == 4  # an embedding, a block, a tanh, a head
    assert times[0] == times[1] and times[0][1] == times[0][2] == times[0][3] > times[0][4] > 0
    assert links[0] == [0.0] * 6 and min(links[1]) > 0
    assert all(p._layout is None for p in model.parameters())  # nothing was laid out


def test_what_was_cut_by_plans_trains_as_on_one_device():
    model = row()
    found = auto_stages(model, PLACES, example=EXAMPLE, costs="planned")
    assert found == sorted(found) and set(found) == {0, 1}
    laid = {p.placement for m, s in zip(model, found, strict=True) for p in m.parameters() if s == 1}
    assert laid == {PLACES[1]} and any(p._layout.codes != (-1,) for p in model.parameters())
    np.testing.assert_allclose(curve(model, PLACES), curve(row()), rtol=1e-5)


def test_costs_are_planned_for_a_local_model_and_an_example():
    with pytest.raises(GraphConfigError, match=r"(?s)planned for an input of the first module.*fix: "):
        auto_stages(row(), PLACES, costs="planned")
    model = row()
    model[-1].weight = model[0].weight
    with pytest.raises(GraphConfigError, match=r"(?s)weight of Linear belongs to stages 0 and 1.*fix: "):
        check_apart([model[:1], model[-1:]])
    laid = row().to_global(PLACES[0], flow.sbp.broadcast)
    with pytest.raises(GraphConfigError, match=r"(?s)weight of Embedding on.*fix: "):
        auto_stages(laid, PLACES, example=EXAMPLE, costs="planned")
