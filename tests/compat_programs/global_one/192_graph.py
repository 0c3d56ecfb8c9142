import oneflow as flow
from oneflow import nn
from shown import fill, fixed, show

P, B, S0 = flow.placement("cpu", [0]), flow.sbp.broadcast, flow.sbp.split(0)
model = nn.Linear(3, 2)
fill(model)
model.to_global(P, B)

class TrainGraph(nn.Graph):
    def __init__(self):
        super().__init__()
        self.model = model
        self.add_optimizer(flow.optim.Adam(model.parameters(), lr=0.1))

    def build(self, x):
        loss = self.model(x).pow(2).mean()
        loss.backward()
        return loss

graph = TrainGraph()
show("losses", [graph(fixed(4, 3, seed=i).to_global(P, S0)).item() for i in range(4)])
show("weight", model.weight)
