"""How well stages overlap: stages of fixed waits on one device each, against the ideal of the schedule."""

import gc
import time

import jax
import numpy as np
import pytest

import sbpjax as flow
from sbpjax import nn
from sbpjax._core.tensor.dispatch import dispatch
from sbpjax._core.tensor.dispatch.op import op_of
from sbpjax.errors import GraphConfigError
from sbpjax.pipeline import linear, schedule
from tests.graph.pipeline.waiting import wait

B = flow.sbp.broadcast
PLACES = [flow.placement("cpu", [r]) for r in range(4)]


class Waits(nn.Graph):
    def __init__(self, layers, places, micro_batches, schedule, seconds):
        super().__init__()
        self.layers, self.places, self.seconds = layers, places, seconds
        self.add_optimizer(flow.optim.SGD(layers.parameters(), lr=0.1))
        self.config.set_gradient_accumulation_steps(micro_batches)
        self.config.set_pipeline(schedule)

    def build(self, x, y):
        op = op_of(wait, (("forward", self.seconds), ("backward", 2 * self.seconds)))
        for layer, place in zip(self.layers, self.places, strict=True):
            x = dispatch.run(op, (layer(x.to_global(placement=place, sbp=None)),))
        loss = ((x - y) ** 2).mean()
        loss.backward()
        return loss


def graph_of(stages, micro_batches, schedule, *, chunks=1, seconds=0.04, width=64):
    # XLA:CPU runs programs of next to no work while they are launched, so layers have a little width.
    places = PLACES[:stages] * chunks
    layers = nn.ModuleList([nn.Linear(width, width) for _ in places])
    for layer, place in zip(layers, places, strict=True):
        layer.to_global(place, [B])
    graph = Waits(layers, places, micro_batches, schedule, seconds / chunks)
    x = flow.ones(2 * micro_batches, width)
    return graph, (x.to_global(places[0], B), x.to_global(places[-1], B))


def seconds_of(graph, batch, turns=2) -> float:
    """Return how long the best of some steps takes."""
    graph(*batch).numpy()
    times = []
    for _ in range(turns):
        start = time.perf_counter()
        graph(*batch).numpy()
        for p in graph.layers.parameters():
            p.numpy()
        times.append(time.perf_counter() - start)
    return min(times)


@pytest.mark.parametrize(("schedule", "chunks"), [("1f1b", 1), ("interleaved", 2)])
def test_stages_work_at_once(schedule, chunks):
    stages, micro_batches, wait_for = 4, 8, 0.04
    graph, batch = graph_of(stages, micro_batches, schedule, chunks=chunks, seconds=wait_for)
    serial = 3 * wait_for * micro_batches * stages
    ideal = serial / stages / (1 - graph_bubble(graph, batch))
    # `benchmarks/pipeline.py` measures the bubble; here the machine may be busy with other tests.
    assert ideal < 0.4 * serial
    assert seconds_of(graph, batch) < 0.7 * serial


def graph_bubble(graph, batch) -> float:
    graph.compile(*batch)
    return graph.program.pipeline.body.schedule.bubble


def test_a_schedule_given_by_hand_is_obeyed():
    graph, batch = graph_of(2, 4, "gpipe", seconds=0.0)
    first = graph(*batch).numpy()
    rows = graph.program.pipeline.body.schedule.rows()
    assert [kind for kind, _, _ in rows[0]] == ["F"] * 4 + ["B"] * 4
    order = [(kind, 0, m) for kind, m in zip("FFFBFBBB", (0, 1, 2, 0, 3, 1, 2, 3), strict=True)]
    again, batch = graph_of(2, 4, [order, [("FB", 1, m) for m in range(4)]], seconds=0.0)
    assert again(*batch).shape == first.shape
    assert again.program.pipeline.body.schedule.rows()[0] == order


def test_a_schedule_out_of_order_is_refused():
    with pytest.raises(GraphConfigError, match=r"(?s)\[1, 0\].*fix: "):
        schedule([[("F", 0, 1), ("F", 0, 0), ("B", 0, 0), ("B", 0, 1)], [("FB", 1, 0), ("FB", 1, 1)]], linear(2), 2)


def test_a_schedule_that_waits_for_itself_is_refused():
    wrong = [[("B", 0, 0), ("F", 0, 0)], [("FB", 1, 0)]]
    with pytest.raises(GraphConfigError, match=r"(?s)every stage waits for another.*fix: "):
        schedule(wrong, linear(2), 1)


class Wide(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up, self.down = nn.Linear(width, 16 * width), nn.Linear(16 * width, width)

    def forward(self, x):
        return self.down(self.up(x).tanh())


def peaks(micro_batches, schedule="1f1b", stages=4, width=32) -> list[int]:
    """Return per stage the bytes that a step adds at its fullest moment to what lies on the stage's device."""
    layers = nn.ModuleList([Wide(width) for _ in range(stages)])
    for layer, place in zip(layers, PLACES, strict=True):
        layer.to_global(place, [B])
    graph = Waits(layers, PLACES[:stages], micro_batches, schedule, 0.0)
    x = flow.ones(2 * micro_batches, width)
    batch = x.to_global(PLACES[0], B), x.to_global(PLACES[stages - 1], B)
    graph(*batch)
    most, start = [0] * stages, [0] * stages
    tasks = graph.program.pipeline.body.tasks

    def held() -> list[int]:
        found = [0] * stages
        for array in jax.live_arrays():
            (device, *_) = array.devices()
            if device.id < stages:
                found[device.id] += array.nbytes
        return found

    def watched(call):
        def run(*arrays):
            start[:] = start if any(start) else held()
            results = call(*arrays)
            most[:] = map(max, most, held())
            return results

        return run

    for task in tasks:
        task.executable = watched(task.executable)
    gc.collect()
    graph(*batch)
    return [m - s for m, s in zip(most, start, strict=True)]


def test_what_stages_hold_does_not_grow_with_the_number_of_micro_batches():
    few, many = peaks(8), peaks(64)
    assert few[0] > few[1] > few[2] > few[3]  # S - s micro-batches on stage s
    for a, b in zip(few, many, strict=True):
        assert b <= 1.05 * a
    assert peaks(64, "gpipe")[0] > 4 * many[0]


def test_a_step_takes_over_the_memory_of_the_state():
    graph, batch = graph_of(2, 2, "1f1b", seconds=0.0)
    graph(*batch)
    weight = graph.layers[0].weight
    before = weight.jax()
    kept = np.array(before)
    graph(*batch)
    np.testing.assert_array_equal(np.array(before), kept)  # somebody holds it: it is copied first
    del before
    array = graph.layers[1].weight._array
    pointer = array.unsafe_buffer_pointer()
    del array
    graph(*batch)
    graph(*batch)
    assert graph.layers[1].weight._array.unsafe_buffer_pointer() == pointer
