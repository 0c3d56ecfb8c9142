# ranks: 4
import oneflow as flow
from oneflow import nn
from oneflow.nn import functional as F
from shown import fill, fixed, show

P = flow.placement("cpu", [0, 1, 2, 3])
B, S0 = flow.sbp.broadcast, flow.sbp.split(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
fill(model)
model.to_global(P, B)

class TrainGraph(nn.Graph):
    def __init__(self):
        super().__init__()
        self.model = model
        self.add_optimizer(flow.optim.AdamW(model.parameters(), lr=0.05))

    def build(self, x, y):
        loss = F.cross_entropy(self.model(x), y)
        loss.backward()
        return loss

graph = TrainGraph()
labels = flow.tensor([0, 1, 2, 0, 1, 2, 0, 1]).to_global(P, B).to_global(sbp=S0)
for step in range(3):
    x = fixed(8, 4, seed=step).to_global(P, B).to_global(sbp=S0)
    show(f"loss {step}", graph(x, labels).numpy())
show("weight", model[0].weight.numpy())
