import oneflow as flow
from oneflow import nn
from shown import fill, fixed, show

model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))
fill(model)
model[0].weight.requires_grad = False
model[0].bias.requires_grad = False
before = model[0].weight.detach().clone()
optimizer = flow.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)

class TrainGraph(nn.Graph):
    def __init__(self):
        super().__init__()
        self.model = model
        self.add_optimizer(optimizer)

    def build(self, x):
        loss = self.model(x).pow(2).mean()
        loss.backward()
        return loss

graph = TrainGraph()
show("losses", [graph(fixed(4, 3, seed=i)).item() for i in range(3)])
show("kept", flow.equal(before, model[0].weight))
