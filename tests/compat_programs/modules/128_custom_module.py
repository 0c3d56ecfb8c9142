import oneflow as flow
import oneflow.nn as nn
from shown import fill, fixed, show

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.act = nn.ReLU()
        self.second = nn.Linear(8, 2)

    def forward(self, x):
        return self.second(self.act(self.first(x)))

net = Net()
fill(net)
show("out", net(fixed(3, 4)))
show("names", [n for n, _ in net.named_parameters()])
show("children", [n for n, _ in net.named_children()])
show("modules", [type(m).__name__ for m in net.modules()])
show("repr", str(net))
