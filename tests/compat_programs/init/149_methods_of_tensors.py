import oneflow as flow
import oneflow.nn as nn
from shown import fixed, show

x = flow.zeros(500, 100)
x.normal_(0.0, 0.5)
show("normal_", abs(x.std().item() - 0.5) < 0.01)
x.uniform_(1.0, 2.0)
show("uniform_", (x.min().item() >= 1.0, x.max().item() <= 2.0))
x.fill_(3.0)
show("fill_", x.mean())
x.zero_()
show("zero_", x.sum())
p = nn.Parameter(flow.empty(3, 5))
with flow.no_grad():
    p.copy_(fixed(3, 5))
show("copy_", p.detach())
p.data.fill_(0.25)
show("data", p.sum().detach())
