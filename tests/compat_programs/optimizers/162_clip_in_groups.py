import oneflow as flow
from oneflow import nn
from shown import fixed, show

w = nn.Parameter(fixed(4) * 5)
optimizer = flow.optim.SGD([{"params": [w], "lr": 0.1, "clip_grad_max_norm": 0.5, "clip_grad_norm_type": 2.0}])
for step in range(3):
    optimizer.zero_grad()
    (w**2).sum().backward()
    optimizer.clip_grad()
    optimizer.step()
show("w", w.detach())
show("grad", w.grad)
