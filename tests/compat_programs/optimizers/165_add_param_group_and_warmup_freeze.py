import oneflow as flow
from oneflow import nn
from shown import fill, fixed, show

model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))
fill(model)
optimizer = flow.optim.SGD(model[1].parameters(), lr=0.1)
for step in range(4):
    if step == 2:
        optimizer.add_param_group({"params": model[0].parameters(), "lr": 0.01}) if hasattr(optimizer, "add_param_group") else None
    optimizer.zero_grad()
    model(fixed(4, 3, seed=step)).pow(2).mean().backward()
    optimizer.step()
show("head", model[1].weight.detach())
show("groups", len(optimizer.param_groups) >= 1)
try:
    flow.optim.SGD(model.parameters(), lr=-1.0)
    show("negative", "no error")
except (ValueError, AssertionError):
    show("negative", "error")
