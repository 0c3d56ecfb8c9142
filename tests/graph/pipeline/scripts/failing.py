"""Run by test_processes.py on two ranks: in the third step the second stage fails, in one of two ways."""

import os
import signal
import sys
import time

import numpy as np

import sbpjax as flow
from sbpjax import nn

rank = flow.env.get_rank()
PLACES = [flow.placement("cpu", [r]) for r in range(2)]
B = flow.sbp.broadcast
layers = [nn.Linear(4, 4).to_global(place, [B]) for place in PLACES]


class Step(nn.Graph):
    def __init__(self):
        super().__init__()
        self.front, self.back = layers
        self.add_optimizer(flow.optim.SGD([p for layer in layers for p in layer.parameters()], lr=0.1))
        self.config.set_gradient_accumulation_steps(4)

    def build(self, x):
        loss = self.back(self.front(x).to_global(placement=PLACES[1])).square().mean()
        loss.backward()
        return loss


graph, x = Step(), flow.ones(8, 4, placement=PLACES[0], sbp=B)


def own():
    """Return the weight of this process's stage."""
    return layers[rank].weight.to_local().numpy()


kept = [own()]
for _ in range(2):
    print(f"loss {graph(x).mean().item():.4f}")
    kept.append(own())
assert (kept[0] != kept[1]).any() and (kept[1] != kept[2]).any()

if rank == 1:
    print(f"fails at {time.time()}", flush=True)
    if sys.argv[1] == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    task = next(t for t in graph.program.pipeline.body.tasks if t.executable is not None)
    before, calls = task.executable, []

    def failing(*arrays):
        calls.append(1)
        if len(calls) == 3:  # of four micro-batches
            raise FloatingPointError("a nan in micro-batch 2")
        return before(*arrays)

    task.executable = failing
try:
    graph(x).numpy()
except FloatingPointError:
    np.testing.assert_array_equal(own(), kept[2])
    print(f"rank {rank} has the weights of the last finished step")
    raise
