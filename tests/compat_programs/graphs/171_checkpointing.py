import oneflow as flow
from oneflow import nn
from shown import fill, fixed, show

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 4))
        self.b = nn.Linear(4, 1)

    def forward(self, x):
        return self.b(self.a(x))

net = Net()
fill(net)

class TrainGraph(nn.Graph):
    def __init__(self):
        super().__init__()
        self.net = net
        self.net.a.to(nn.graph.GraphModule).activation_checkpointing = True
        self.add_optimizer(flow.optim.SGD(net.parameters(), lr=0.05))

    def build(self, x):
        loss = self.net(x).pow(2).sum()
        loss.backward()
        return loss

graph = TrainGraph()
show("losses", [graph(fixed(2, 4, seed=i)).item() for i in range(4)])
