import oneflow as flow
import oneflow.nn as nn
from shown import fill, fixed, show

model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
fill(model)
criterion = nn.CrossEntropyLoss()
optimizer = flow.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

class TrainGraph(nn.Graph):
    def __init__(self):
        super().__init__()
        self.model = model
        self.loss = criterion
        self.add_optimizer(optimizer)

    def build(self, x, y):
        loss = self.loss(self.model(x), y)
        loss.backward()
        return loss

graph = TrainGraph()
labels = flow.tensor([0, 1, 2, 1])
show("losses", [graph(fixed(4, 4, seed=i), labels).item() for i in range(5)])
show("weight", model[0].weight.detach())
