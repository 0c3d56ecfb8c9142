# ranks: 4
import oneflow as flow
import oneflow.nn as nn
from shown import fill, fixed, show
from oneflow.nn.parallel import DistributedDataParallel as ddp

rank = flow.env.get_rank()
model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
fill(model)
model = ddp(model)
optimizer = flow.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    x = fixed(2, 3, seed=10 * step + rank)
    loss = model(x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    show(f"loss {step}", loss.item())
show("weights", [p.detach() for p in model.parameters()])
show("keys", sorted(model.state_dict().keys()))
