import oneflow as flow
import oneflow.nn as nn
from shown import fixed, show

w = nn.Parameter(fixed(4))
optimizer = flow.optim.SGD([w], lr=0.05, momentum=0.8, nesterov=True)
for step in range(4):
    optimizer.zero_grad()
    ((w - 1.0) ** 2).sum().backward()
    optimizer.step()
show("w", w.detach())
