# ranks: 4
import oneflow as flow
from oneflow import nn
from oneflow.nn import functional as F
from shown import fixed, show

P = flow.placement("cpu", [0, 1, 2, 3])
B, S0, S1 = flow.sbp.broadcast, flow.sbp.split(0), flow.sbp.split(1)

class Parallel(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up = nn.Parameter((fixed(width, 2 * width) * 0.3).to_global(P, B).to_global(sbp=S1))
        self.down = nn.Parameter((fixed(2 * width, width, seed=1) * 0.3).to_global(P, B).to_global(sbp=S0))

    def forward(self, x):
        x = x.to_global(grad_sbp=x.sbp)
        h = F.relu(flow.matmul(x, self.up))
        y = flow.matmul(h, self.down)
        if self.training:
            y = y.to_global(sbp=B)
        return y + x

model = nn.Sequential(Parallel(4), Parallel(4))

class TrainGraph(nn.Graph):
    def __init__(self):
        super().__init__()
        self.model = model
        self.add_optimizer(flow.optim.SGD(model.parameters(), lr=0.05))

    def build(self, x):
        loss = self.model(x).pow(2).mean()
        loss.backward()
        return loss

graph = TrainGraph()
for step in range(3):
    show(f"loss {step}", graph(fixed(2, 4, seed=step).to_global(P, B)).numpy())
show("up", model[0].up.numpy())
