# ranks: 4
import oneflow as flow
import oneflow.nn as nn
from oneflow.nn import functional as F
from shown import fixed, show

P = flow.placement("cpu", ranks=[[0, 1], [2, 3]])
B, S0, S1 = flow.sbp.broadcast, flow.sbp.split(0), flow.sbp.split(1)

class MLP(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.up = nn.Parameter(fixed(width, hidden).to_global(P, [B, B]).to_global(sbp=[B, S1]))
        self.down = nn.Parameter(fixed(hidden, width, seed=1).to_global(P, [B, B]).to_global(sbp=[B, S0]))

    def forward(self, x):
        x = x.to_global(sbp=[S0, B])
        h = F.gelu(flow.matmul(x, self.up))
        y = flow.matmul(h, self.down)
        return y.to_global(sbp=[S0, B])

model = MLP(4, 8)
x = fixed(4, 4, seed=3).to_global(P, [B, B])
y = model(x)
y.sum().backward()
show("y", (y.sbp, y.numpy()))
show("up", model.up.grad.numpy())
show("down", model.down.grad.numpy())
