import oneflow as flow
import oneflow.nn as nn
from shown import show

def rates(make, steps=10):
    optimizer = flow.optim.SGD([nn.Parameter(flow.ones(1))], lr=0.1)
    scheduler, found = make(optimizer), []
    for _ in range(steps):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return found

lrs = flow.optim.lr_scheduler
show("annealing", rates(lambda o: lrs.CosineAnnealingLR(o, T_max=5, eta_min=0.01)))
show("decay", rates(lambda o: lrs.CosineDecayLR(o, decay_steps=6, alpha=0.1)))
show("restarts", rates(lambda o: lrs.CosineAnnealingWarmRestarts(o, T_0=3, T_mult=2)))
