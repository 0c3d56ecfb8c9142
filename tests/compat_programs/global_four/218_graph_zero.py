# ranks: 4
import oneflow as flow
import oneflow.nn as nn
from shown import fill, fixed, show

P = flow.placement("cpu", [0, 1, 2, 3])
B, S0 = flow.sbp.broadcast, flow.sbp.split(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
fill(model)
model.to_global(P, B)

class TrainGraph(nn.Graph):
    def __init__(self):
        super().__init__()
        self.model = model
        self.config.enable_zero(True, stage=2)
        self.add_optimizer(flow.optim.Adam(model.parameters(), lr=0.01))

    def build(self, x):
        loss = self.model(x).pow(2).mean()
        loss.backward()
        return loss

graph = TrainGraph()
for step in range(3):
    x = fixed(8, 8, seed=step).to_global(P, B).to_global(sbp=S0)
    show(f"loss {step}", graph(x).numpy())
show("weight", model[2].weight.numpy())
