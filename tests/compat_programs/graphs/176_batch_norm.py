import oneflow as flow
import oneflow.nn as nn
from oneflow.nn import functional as F
from shown import fill, fixed, show

model = nn.Sequential(nn.Conv2d(2, 3, 3, padding=1), nn.BatchNorm2d(3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(1), nn.Linear(3, 2))
fill(model)
optimizer = flow.optim.SGD(model.parameters(), lr=0.05)

class TrainGraph(nn.Graph):
    def __init__(self):
        super().__init__()
        self.model = model
        self.add_optimizer(optimizer)

    def build(self, x, y):
        loss = F.cross_entropy(self.model(x), y)
        loss.backward()
        return loss

class EvalGraph(nn.Graph):
    def __init__(self):
        super().__init__()
        self.model = model

    def build(self, x):
        return self.model(x).argmax(dim=1)

train = TrainGraph()
y = flow.tensor([0, 1, 1])
show("losses", [train(fixed(3, 2, 4, 4, seed=i), y).item() for i in range(3)])
show("mean", model[1].running_mean)
model.eval()
show("classes", EvalGraph()(fixed(5, 2, 4, 4, seed=9)))
