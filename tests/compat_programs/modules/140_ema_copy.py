import copy

import oneflow as flow
import oneflow.nn as nn
from shown import fill, fixed, show

model = nn.Linear(3, 2)
fill(model)
ema = copy.deepcopy(model)
optimizer = flow.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    optimizer.zero_grad()
    model(fixed(4, 3, seed=step)).pow(2).mean().backward()
    optimizer.step()
    with flow.no_grad():
        for averaged, now in zip(ema.parameters(), model.parameters()):
            averaged.mul_(0.9).add_(now, alpha=0.1)
show("model", model.weight.detach())
show("ema", ema.weight.detach())
