# ranks: 4
import oneflow as flow
import oneflow.nn as nn
from shown import fill, fixed, show
from oneflow.nn.parallel import DistributedDataParallel

rank = flow.env.get_rank()
net = nn.Sequential(nn.Linear(4, 6), nn.LayerNorm(6), nn.Linear(6, 2))
fill(net)
net = DistributedDataParallel(net)
optimizer = flow.optim.AdamW(net.parameters(), lr=0.01)
criterion = nn.CrossEntropyLoss()
for step in range(2):
    x, y = fixed(4, 4, seed=step * 4 + rank), flow.tensor([rank % 2, 0, 1, 1])
    loss = criterion(net(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
total = flow.comm.all_reduce(loss.detach().clone())
show("total", total if total is not None else "none")
show("bias", [p.detach().sum() for p in net.parameters()])
