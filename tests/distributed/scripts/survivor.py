"""Run by test_checkpoints.py: training that is killed at random moments and goes on from its last checkpoint."""

import os
import random
import signal
import sys
import threading

import sbpjax as flow
from sbpjax import checkpoint

folder, kills, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
rank, ranks, start = flow.env.get_rank(), flow.env.get_world_size(), int(os.environ["RESTART_COUNT"])
everywhere = flow.placement.all("cpu")


def build():
    flow.manual_seed(4)
    model = flow.nn.Sequential(flow.nn.Linear(3, 5), flow.nn.Tanh(), flow.nn.Linear(5, 1))
    model.to_global(everywhere, flow.sbp.broadcast)
    return model, flow.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def step(model, optimizer, i):
    """Train on the i-th batch and return the loss."""
    flow.manual_seed(1000 + i)
    x = flow.randn(4, 3, placement=everywhere, sbp=flow.sbp.split(0))
    loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


model, optimizer = build()
losses, seen = [], []
manager = checkpoint.Manager(folder, keep_last=2)
found = manager.restore(placement=everywhere, sbp=flow.sbp.broadcast)
if found is not None:
    _, state = found
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    losses, seen = state["losses"], state["seen"]
if start < kills and rank == start % ranks:
    moment = random.Random(start).uniform(0.05, 1.0)
    threading.Timer(moment, os.kill, (os.getpid(), signal.SIGKILL)).start()
i = len(losses)
while i < steps or start < kills:  # a start that is to be killed does not come to its end
    if i < steps:
        losses.append(step(model, optimizer, i))
        seen.append(i)
        manager.save(
            i, {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "losses": losses, "seen": seen}
        )
        i += 1
    flow.distributed.barrier()
manager.wait()

assert seen == list(range(steps))  # no batch lost, none twice
model, optimizer = build()
assert [step(model, optimizer, i) for i in range(steps)] == losses
assert manager.steps() == [steps - 2, steps - 1]
print(f"rank {rank} of {ranks} passed")
