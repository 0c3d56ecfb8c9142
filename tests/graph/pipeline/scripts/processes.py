"""Run by test_processes.py on several processes: pipelines give the numbers of rank 0 alone, on every rank.

processes.py sample net ...          the names of cases
"""

import functools
import sys

import numpy as np

import sbpjax as flow
from sbpjax import nn
from tests.graph.pipeline.nets import S0, B, same, train

rank, ranks = flow.env.get_rank(), flow.env.get_world_size()
count = len(flow.placement.all("cpu").ranks)
ONE = [flow.placement("cpu", [r]) for r in range(count)]
HALVES = [flow.placement("cpu", range(count // 2)), flow.placement("cpu", range(count // 2, count))]


@functools.cache
def alone(blocks, micro_batches, steps, configure=None, **options):
    return train(ONE[:1] * blocks, micro_batches, steps=steps, configure=configure, pipelined=False, **options)


def check(places, micro_batches=4, schedule="1f1b", sbp=B, configure=None, steps=4, **options):
    def both(graph):
        graph.config.set_pipeline(schedule)
        if configure is not None:
            configure(graph)

    found = train(places, micro_batches, steps=steps, sbp=sbp, configure=both, **options)
    same(found, alone(len(places), micro_batches, steps, configure, **options))
    agreed(found)


def agreed(found):
    gathered = [None] * ranks
    flow.distributed.all_gather_object(gathered, [v.tobytes() for v in (found[0], *found[1].values())])
    assert all(t == gathered[0] for t in gathered)


def clip(graph):
    graph.config.set_clip_grad_norm(0.05)


def zero(graph):
    graph.config.enable_zero(True, stage=2, shard_min_size=1)


def half(graph):
    graph.config.enable_amp(True, dtype=flow.float16)
    graph.set_grad_scaler(flow.amp.GradScaler(init_scale=2.0**40))  # the first steps overflow


class Small(nn.Graph):
    """Two layers, of which the second stage reads both."""

    def __init__(self, places):
        super().__init__()
        flow.manual_seed(0)
        self.place = places[1] if places[1] != places[0] else None
        self.front, self.back = nn.Linear(8, 8).to_global(places[0], [B]), nn.Linear(8, 8).to_global(places[1], [B])
        parameters = [*self.front.parameters(), *self.back.parameters()]
        self.add_optimizer(flow.optim.SGD(parameters, lr=0.1, momentum=0.9))
        self.config.set_gradient_accumulation_steps(4)
        self.config.set_clip_grad_norm(0.05)

    def build(self, x, y):
        hidden, weight = self.front(x), self.front.weight
        if self.place is not None:
            hidden, weight = hidden.to_global(placement=self.place), weight.to_global(placement=self.place, sbp=None)
        loss = (self.back(hidden) @ weight - y).square().mean()
        loss.backward()
        return loss


def sample():
    """A weight of the first stage that the last reads too, and one norm over both, in a net that compiles fast."""
    found = []
    for places in (ONE[:2], ONE[:1] * 2):
        graph, numbers = Small(places), np.random.default_rng(0).standard_normal((2, 8, 8), np.float32)
        x, y = (flow.tensor(n, placement=p, sbp=B) for n, p in zip(numbers, places, strict=True))
        losses = [graph(x, y).numpy() for _ in range(3)]
        blocks = graph._g.blocks.items()
        weights = {f"{name}.{n}": t.numpy() for name, block in blocks for n, t in block.state_dict().items()}
        found.append((np.concatenate(losses), weights))
        if places[0] != places[1]:
            busy = graph.pipeline_report(rounds=1).schedule.busy
            assert len(busy) == 2 and min(busy) > 0  # of both stages, on both ranks
    same(*found)
    agreed(found[0])


def net():
    check(ONE, configure=clip, tied=True, rows=64)


def schedules():
    for name in ("1f1b", "gpipe", "zero_bubble"):
        for micro_batches in (1, 4, 8, 32):
            check(ONE, micro_batches, name, steps=8)


def fifty():
    check(ONE, 8, steps=50)


def interleaved():
    check([*ONE, *ONE], 4, "interleaved")


def random():
    if rank:
        flow.rand(3)  # a number that only some ranks draw must not lead them apart
    check(ONE, dropout=0.3, norm=True)


def halves():
    """Stages of several ranks, with two of them next to each other or one inside each process."""
    for configure in (clip, zero):
        check(HALVES, sbp=S0, configure=configure)


def across():
    """Every stage lies on all processes."""
    places = [flow.placement("cpu", range(0, count, 2)), flow.placement("cpu", range(1, count, 2))]
    for configure in (clip, zero):
        check(places, sbp=S0, configure=configure)


def unlike():
    """Stages of one and of many ranks: what goes there and back is whole."""
    check([ONE[0], flow.placement("cpu", range(1, count))], tied=True, rows=64, configure=clip)


def grids():
    """Pipeline, data and tensor parallel."""

    def configure(graph):
        clip(graph)
        for block in graph.net.origin.blocks:
            if len(block.up.weight.placement.hierarchy) == 2:
                block.up.weight.data = block.up.weight.data.to_global(sbp=[B, S0])
                block.down.weight.data = block.down.weight.data.to_global(sbp=[B, flow.sbp.split(1)])

    check([flow.placement("cpu", [[0, 1], [4, 5]]), flow.placement("cpu", [[2, 3], [6, 7]])],
          sbp=[S0, B], configure=configure)  # fmt: skip


def all_skip():
    """All stages leave a step out that overflows on one."""
    losses, state, graph = train(ONE, 4, configure=half, steps=1, optimizer=lambda p: flow.optim.SGD(p, lr=0.1))
    fresh = train(ONE, 4, steps=0)[1]
    assert all((state[name] == value).all() for name, value in fresh.items())
    assert graph._g.scaler.get_scale() == 2.0**39


for name in sys.argv[1:]:
    globals()[name]()
print(f"rank {rank} of {ranks} passed")
