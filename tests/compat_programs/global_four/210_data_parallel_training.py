# ranks: 4
import oneflow as flow
from oneflow import nn
from shown import fill, fixed, show

P = flow.placement("cpu", [0, 1, 2, 3])
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
fill(model)
model = model.to_global(P, flow.sbp.broadcast)
optimizer = flow.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
losses = []
for step in range(3):
    x = fixed(8, 4, seed=step).to_global(P, flow.sbp.broadcast).to_global(sbp=flow.sbp.split(0))
    loss = model(x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.numpy())
show("losses", losses)
show("weight", model[0].weight.numpy())
