import oneflow as flow
import oneflow.nn as nn
from shown import fill, fixed, show

model = nn.Linear(3, 1)
fill(model)
optimizer = flow.optim.SGD(model.parameters(), lr=0.1)
for step in range(8):
    loss = model(fixed(2, 3, seed=step)).pow(2).mean() / 4
    loss.backward()
    if (step + 1) % 4 == 0:
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
show("weight", model.weight.detach())
show("none", model.weight.grad is None)
