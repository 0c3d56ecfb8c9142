# ranks: 4
import oneflow as flow
import oneflow.nn as nn
from shown import fill, fixed, show

P = flow.placement("cpu", [0, 1, 2, 3])
B, S0, S1 = flow.sbp.broadcast, flow.sbp.split(0), flow.sbp.split(1)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4))
fill(model)
model[0].to_global(P, B).to_global(sbp=S0)
model[2].weight = nn.Parameter(model[2].weight.detach().to_global(P, B).to_global(sbp=S1))
model[2].bias = nn.Parameter(model[2].bias.detach().to_global(P, B))

class TrainGraph(nn.Graph):
    def __init__(self):
        super().__init__()
        self.model = model
        self.add_optimizer(flow.optim.SGD(model.parameters(), lr=0.1))

    def build(self, x):
        loss = self.model(x).pow(2).mean()
        loss.backward()
        return loss

graph = TrainGraph()
for step in range(3):
    show(f"loss {step}", graph(fixed(4, 4, seed=step).to_global(P, B)).numpy())
show("shape", model[0].weight.shape)
