# ranks: 4
import oneflow as flow
import oneflow.nn as nn
from shown import fixed, show

P = flow.placement("cpu", [0, 1, 2, 3])
B, S0, S1 = flow.sbp.broadcast, flow.sbp.split(0), flow.sbp.split(1)

class ColumnLinear(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.weight = nn.Parameter(fixed(i, o).to_global(P, B).to_global(sbp=S1))
        self.bias = nn.Parameter(fixed(o, seed=1).to_global(P, B).to_global(sbp=S0))

    def forward(self, x):
        x = x.to_global(sbp=B)
        return flow.matmul(x, self.weight) + self.bias

class RowLinear(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.weight = nn.Parameter(fixed(i, o, seed=2).to_global(P, B).to_global(sbp=S0))

    def forward(self, x):
        x = x.to_global(sbp=S1)
        return flow.matmul(x, self.weight).to_global(sbp=B)

model = nn.Sequential(ColumnLinear(6, 8), nn.GELU(), RowLinear(8, 6))
x = fixed(3, 6, seed=5).to_global(P, B)
out = model(x)
out.pow(2).sum().backward()
show("out", (out.sbp, out.numpy()))
show("column grad", (model[0].weight.grad.shape, model[0].weight.grad.numpy().sum()))
show("row grad", model[2].weight.grad.numpy())
