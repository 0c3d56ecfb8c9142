# ranks: 4
import oneflow as flow
import oneflow.nn as nn
from shown import fixed, show

P = flow.placement("cpu", ranks=[[0, 1], [2, 3]])
B, S0, S1 = flow.sbp.broadcast, flow.sbp.split(0), flow.sbp.split(1)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(fixed(4, 8).to_global(P, [B, B]).to_global(sbp=[B, S1]))

    def forward(self, x):
        assert x.is_global
        y = flow.matmul(x, self.weight)
        y = y.to_global(sbp=x.sbp)
        ones = flow.ones(y.shape, placement=y.placement, sbp=[B, B])
        return y + ones.to_global(sbp=x.sbp)

class EvalGraph(nn.Graph):
    def __init__(self):
        super().__init__()
        self.net = Net()

    def build(self, x):
        return self.net(x)

graph = EvalGraph()
y = graph(fixed(4, 4).to_global(P, [B, B]).to_global(sbp=[S0, B]))
show("y", (y.shape, y.numpy()))
