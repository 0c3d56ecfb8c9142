import oneflow as flow
import oneflow.nn as nn
from shown import fill, fixed, show

P, B, S0 = flow.placement("cpu", [0]), flow.sbp.broadcast, flow.sbp.split(0)
model = nn.Linear(3, 2)
fill(model)
model.to_global(P, B)
optimizer = flow.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
losses = []
for step in range(4):
    x = fixed(4, 3, seed=step).to_global(P, S0)
    loss = model(x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
show("losses", losses)
show("weight", model.weight.to_local().detach())
