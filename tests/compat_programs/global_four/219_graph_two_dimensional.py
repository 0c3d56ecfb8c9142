# ranks: 4
import oneflow as flow
from oneflow import nn
import oneflow.nn.functional as F
from shown import fixed, show

P = flow.placement("cpu", ranks=[[0, 1], [2, 3]])
B, S0, S1 = flow.sbp.broadcast, flow.sbp.split(0), flow.sbp.split(1)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Parameter(fixed(4, 8).to_global(P, [B, B]).to_global(sbp=[B, S1]))
        self.b = nn.Parameter(fixed(8, 2, seed=1).to_global(P, [B, B]).to_global(sbp=[B, S0]))

    def forward(self, x):
        return flow.matmul(F.relu(flow.matmul(x, self.a)), self.b)

net = Net()

class TrainGraph(nn.Graph):
    def __init__(self):
        super().__init__()
        self.net = net
        self.add_optimizer(flow.optim.SGD(net.parameters(), lr=0.01))

    def build(self, x):
        loss = self.net(x).pow(2).mean()
        loss.backward()
        return loss

graph = TrainGraph()
for step in range(3):
    x = fixed(4, 4, seed=step).to_global(P, [B, B]).to_global(sbp=[S0, B])
    show(f"loss {step}", graph(x).numpy())
show("a", (net.a.sbp, net.a.numpy()))
