# ranks: 4
import oneflow as flow
import oneflow.nn as nn
from shown import fill, fixed, show

rank, size = flow.env.get_rank(), flow.env.get_world_size()
model = nn.Linear(3, 2)
fill(model, seed=rank)
for p in model.parameters():
    flow.comm.broadcast(p.data, 0)
optimizer = flow.optim.SGD(model.parameters(), lr=0.1)
for step in range(2):
    loss = model(fixed(2, 3, seed=step * 4 + rank)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    for p in model.parameters():
        flow.comm.all_reduce(p.grad)
        p.grad /= size
    optimizer.step()
    show(f"loss {step}", loss.item())
show("weight", model.weight.detach())
