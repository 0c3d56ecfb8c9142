"""Pipelines on paper: schedules against known bubbles, cuts against brute force, reports of small graphs."""

import itertools
import json

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import nn
from sbpjax.errors import GraphConfigError, GraphError, GraphTypeError
from sbpjax.graph.pipeline.stages import balance_stages
from sbpjax.pipeline import auto_stages, linear, schedule, simulate
from tests.graph.pipeline.test_timing import PLACES, graph_of


@pytest.mark.parametrize("stages", [1, 2, 4, 8])
@pytest.mark.parametrize("micro_batches", [1, 4, 8, 32])
def test_bubbles_and_activations_are_the_known_ones(stages, micro_batches):
    ideal = (stages - 1) / (micro_batches + stages - 1)
    plain, all_forwards = (simulate(rule, stages, micro_batches) for rule in ("1f1b", "gpipe"))
    assert [plain.bubble, all_forwards.bubble, plain.ideal] == pytest.approx([ideal] * 3)
    assert plain.peak_activations == [min(stages - s, micro_batches) for s in range(stages)]
    assert all_forwards.peak_activations[0] == (micro_batches if stages > 1 else 1)
    zero = simulate("zero_bubble", stages, micro_batches)
    assert zero.bubble < ideal or stages == 1
    assert zero.peak_activations == plain.peak_activations


@pytest.mark.parametrize(("stages", "micro_batches", "chunks"), [(2, 8, 2), (4, 8, 2), (4, 32, 4), (8, 16, 2)])
def test_interleaving_divides_the_bubble(stages, micro_batches, chunks):
    found = simulate("interleaved", stages, micro_batches, chunks=chunks, forward=1 / chunks, backward=2 / chunks)
    assert found.makespan == pytest.approx(3 * micro_batches + 3 * (stages - 1) / chunks)


def test_links_delay_and_are_counted():
    slow, fast = simulate("1f1b", 4, 8, link=0.5), simulate("1f1b", 4, 8)
    assert slow.makespan >= fast.makespan + 2 * 3 * 0.5
    assert slow.link_use == [pytest.approx(2 * 8 * 0.5 / slow.makespan)] * 3


def test_many_ranks_are_simulated_fast():
    assert simulate("1f1b", 64, 256).bubble == pytest.approx(63 / 319)


def finish(plan, owners, threads):
    """Do what processes do, one event at a time where both sides have come to it; return how many are left.

    Args:
        plan: the schedule.
        owners: per stage the processes that it lies on.
        threads: whether a thread of its own sends and receives.
    """
    works = plan.works
    targets = [{w.stage for w in works if i in w.after} - {work.stage} for i, work in enumerate(works)]
    ends = [
        {p for s in (w.stage, *targets[i]) for p in owners[s]} if targets[i] else set() for i, w in enumerate(works)
    ]
    chains = {}
    for p in {p for own in owners for p in own}:
        events = plan.events([p in owners[w.stage] for w in works], [p in e for e in ends])
        for event in events:
            chains.setdefault((p, threads and not event[2]), []).append(event)
    done, moved = set(), set()

    def members(event):
        work, _, runs = event
        return [(p, threads and not runs) for p in (owners[works[work].stage] if runs else ends[work])]

    def can(event):
        work, micro, runs = event
        if not all(chains[m] and chains[m][0] == event for m in members(event)):
            return False
        stage = works[work].stage
        needed = [((j, micro), works[j].stage == stage) for j in works[work].after] if runs else [((work, micro), True)]
        return all(key in (done if near else moved) for key, near in needed)

    while ready := [chain[0] for chain in chains.values() if chain and can(chain[0])]:
        event = ready[0]
        for m in members(event):
            del chains[m][0]
        (done if event[2] else moved).add(event[:2])
    assert len(done) == len(works) * plan.micro_batches or any(chains.values())
    return sum(map(len, chains.values()))


@pytest.mark.parametrize("threads", [False, True])
@pytest.mark.parametrize("rule", ["1f1b", "gpipe", "zero_bubble", "interleaved"])
def test_no_process_waits_for_ever(rule, threads):
    for stages, micro_batches in ((2, 1), (2, 4), (4, 8)):
        works = linear(stages, 2 if rule == "interleaved" else 1, split_weights=rule == "zero_bubble")
        plan = schedule(rule, works, micro_batches)
        one_each = [[s] for s in range(stages)]
        for owners in (one_each, [[s // 2] for s in range(stages)], [[s % 2] for s in range(stages)],
                       [[2 * s, 2 * s + 1] for s in range(stages)], [[0, 1]] * stages):  # fmt: skip
            assert finish(plan, owners, threads) == 0


def test_a_wrong_order_of_two_processes_is_seen_to_wait():
    plan = schedule("1f1b", linear(2), 4)
    plan.slots.sort(key=lambda slot: (-slot.start, slot.work))
    before = plan.events
    plan.events = lambda runs, sends: before(runs, sends)[:: 1 if runs[0] else -1]
    assert finish(plan, [[0], [1]], True) > 0


def test_cuts_are_the_best_ones():
    rng = np.random.default_rng(0)
    for _ in range(30):
        costs = rng.integers(1, 20, rng.integers(3, 9)).tolist()
        stages = int(rng.integers(1, min(4, len(costs)) + 1))
        found = balance_stages(costs, stages)
        assert found == sorted(found) and set(found) == set(range(stages))
        worst = max(sum(c for c, s in zip(costs, found, strict=True) if s == k) for k in range(stages))
        every = itertools.combinations(range(1, len(costs)), stages - 1)
        best = min(max(sum(costs[a:b]) for a, b in itertools.pairwise([0, *ends, len(costs)])) for ends in every)
        assert worst == best


def test_auto_stages_places_the_modules():
    model = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Linear(64, 4))
    assert auto_stages(model, PLACES[:2]) == [0, 0, 1, 1]
    assert model[0].weight.placement == PLACES[0] and model[3].weight.placement == PLACES[1]
    measured = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 1024), nn.Linear(1024, 8))
    assert sorted(set(auto_stages(measured, PLACES[:2], example=flow.ones(512, 8)))) == [0, 1]


def test_auto_stages_refuses_what_it_cannot_cut():
    with pytest.raises(GraphTypeError, match="fix: "):
        auto_stages(nn.Linear(2, 2), PLACES[:2])
    with pytest.raises(GraphConfigError, match=r"1 modules for 2 stages"):
        auto_stages(nn.Sequential(nn.Linear(2, 2)), PLACES[:2])
    with pytest.raises(GraphConfigError, match=r"1 costs for 2 modules"):
        auto_stages(nn.Sequential(nn.Linear(2, 2), nn.Tanh()), PLACES[:1], costs=[1.0])


def test_a_graph_reports_its_stages(tmp_path):
    graph, batch = graph_of(2, 4, "1f1b", seconds=0.01)
    graph.compile(*batch)
    before = [p.numpy() for p in graph.layers.parameters()]
    found = graph.pipeline_report()
    assert found.schedule.bubble == pytest.approx(0.2, abs=0.12)  # (S - 1) / (M + S - 1)
    assert all(busy >= 4 * 0.03 for busy in found.schedule.busy)
    assert found.peak[0] > 0 and found.schedule.in_flight == [2, 1]
    text = str(found)
    assert "2 stages, 4 micro-batches, 1f1b" in text and len(found.timeline().split("\n")) == 2
    rounds, cuts, cores = found.notes
    assert "median of 9 rounds" in rounds and "share the cores" in cores and all(f"• {n}" in text for n in found.notes)
    assert cuts.startswith("The time of F0") and "includes cutting the micro-batch out of an argument" in cuts
    events = json.loads(found.save(tmp_path / "step.json").read_text())["traceEvents"]
    assert len(events) == 4 * 3 and {e["tid"] for e in events} == {0, 1}
    assert found.save(tmp_path / "step.svg").read_text().count("<rect") == 12
    for a, p in zip(before, graph.layers.parameters(), strict=True):
        np.testing.assert_array_equal(a, p.numpy())
    moved = graph.explain()
    assert [(t.source, t.target, t.bytes, t.times) for t in moved.transfers] == [(0, 1, 2 * 64 * 4, 4), (1, 0, 512, 4)]
    assert "1,024 B per micro-batch between stages" in str(moved) and "test_timing.py:" in str(moved)


def test_a_graph_on_one_placement_has_no_report():
    graph, batch = graph_of(1, 4, "1f1b", seconds=0.0)
    graph.compile(*batch)
    with pytest.raises(GraphError, match=r"(?s)one placement.*fix: "):
        graph.pipeline_report()
