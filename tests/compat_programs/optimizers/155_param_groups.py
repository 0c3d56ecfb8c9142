import oneflow as flow
import oneflow.nn as nn
from shown import fill, fixed, show

model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
fill(model)
optimizer = flow.optim.SGD([{"params": model[0].parameters(), "lr": 0.01}, {"params": model[1].parameters()}], lr=0.1)
show("rates", [group["lr"] for group in optimizer.param_groups])
model(fixed(3, 2)).sum().backward()
optimizer.step()
show("weights", [p.detach() for p in model.parameters()])
for group in optimizer.param_groups:
    group["lr"] = group["lr"] * 0.5
show("halved", [group["lr"] for group in optimizer.param_groups])
