import oneflow as flow
from oneflow import nn
from shown import fill, show

model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
fill(model)
vector = flow.cat([p.detach().reshape(-1) for p in model.parameters()])
show("vector", vector)
offset = 0
for p in model.parameters():
    p.data = (vector[offset : offset + p.numel()] * 2).reshape(p.shape)
    offset += p.numel()
show("weight", model[0].weight.detach())
show("total", offset)
