import oneflow as flow
import oneflow.nn as nn
from shown import fixed, show

w = nn.Parameter(fixed(3, 2))
optimizer = flow.optim.Adam([w], lr=0.1, betas=(0.8, 0.99), eps=1e-6)
for step in range(6):
    optimizer.zero_grad()
    (w.sin() * fixed(3, 2, seed=step)).sum().backward()
    optimizer.step()
show("w", w.detach())
v = nn.Parameter(fixed(3))
optimizer = flow.optim.Adam([v], lr=0.01, weight_decay=0.1, do_bias_correction=False)
for step in range(3):
    optimizer.zero_grad()
    (v**2).sum().backward()
    optimizer.step()
show("v", v.detach())
