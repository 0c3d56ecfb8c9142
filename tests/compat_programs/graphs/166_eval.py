import oneflow as flow
import oneflow.nn as nn
from oneflow.nn import functional as F
from shown import fill, fixed, show

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)

    def forward(self, x):
        return F.relu(self.fc(x))

net = Net()
fill(net)

class EvalGraph(nn.Graph):
    def __init__(self):
        super().__init__()
        self.model = net

    def build(self, x):
        return self.model(x)

graph = EvalGraph()
show("out", graph(fixed(4, 3)))
show("again", graph(fixed(4, 3, seed=1)))
show("eager", flow.allclose(graph(fixed(4, 3)), net(fixed(4, 3)), atol=1e-6))
