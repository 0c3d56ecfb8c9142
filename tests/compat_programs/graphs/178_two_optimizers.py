import oneflow as flow
import oneflow.nn as nn
from oneflow.nn import functional as F
from shown import fill, fixed, show

backbone, head = nn.Linear(3, 4), nn.Linear(4, 2)
fill(backbone)
fill(head, seed=3)

class TrainGraph(nn.Graph):
    def __init__(self):
        super().__init__()
        self.backbone, self.head = backbone, head
        self.add_optimizer(flow.optim.SGD(backbone.parameters(), lr=0.01))
        self.add_optimizer(flow.optim.Adam(head.parameters(), lr=0.1))

    def build(self, x):
        loss = self.head(F.relu(self.backbone(x))).pow(2).mean()
        loss.backward()
        return loss

graph = TrainGraph()
show("losses", [graph(fixed(4, 3, seed=i)).item() for i in range(4)])
show("head", head.bias.detach())
