import oneflow as flow
from oneflow import nn
from shown import fill, fixed, show

model = nn.Linear(3, 2)
fill(model)
optimizer = flow.optim.SGD(model.parameters(), lr=0.1)
static = flow.amp.StaticGradScaler(scale_factor=16.0)
show("static", type(static).__name__)
loss = model(fixed(4, 3)).pow(2).mean()
(loss * 16.0).backward()
with flow.no_grad():
    for p in model.parameters():
        p.grad /= 16.0
optimizer.step()
show("weight", model.weight.detach())
