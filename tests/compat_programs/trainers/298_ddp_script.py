# ranks: 4
import oneflow as flow
import oneflow.nn as nn
from oneflow.nn import functional as F
from shown import fill, fixed, show
from oneflow.nn.parallel import DistributedDataParallel as ddp
from oneflow.utils.data.distributed import DistributedSampler

class Points(flow.utils.data.Dataset):
    def __init__(self):
        self.x, self.y = fixed(16, 3), fixed(16, 1, seed=1)

    def __len__(self):
        return 16

    def __getitem__(self, i):
        return self.x[i], self.y[i]

rank, size = flow.env.get_rank(), flow.env.get_world_size()
dataset = Points()
sampler = DistributedSampler(dataset, num_replicas=size, rank=rank, shuffle=False)
loader = flow.utils.data.DataLoader(dataset, batch_size=2, sampler=sampler)
model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
fill(model)
model = ddp(model)
optimizer = flow.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for epoch in range(2):
    sampler.set_epoch(epoch)
    for x, y in loader:
        loss = F.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    mean = loss.detach().clone()
    flow.comm.all_reduce(mean)
    show(f"epoch {epoch}", mean / size)
show("weights", [p.detach().sum() for p in model.parameters()])
