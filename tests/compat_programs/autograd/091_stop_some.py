import oneflow as flow
import oneflow.nn as nn
from shown import fill, fixed, show

model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
fill(model)
for parameter in model[0].parameters():
    parameter.requires_grad = False
model(fixed(5, 4)).sum().backward()
show("frozen", [p.grad is None for p in model.parameters()])
show("last", model[2].weight.grad)
show("trainable", sum(p.numel() for p in model.parameters() if p.requires_grad))
