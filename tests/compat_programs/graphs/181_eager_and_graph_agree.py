import oneflow as flow
import oneflow.nn as nn
import oneflow.nn.functional as F
from shown import fill, fixed, show

def build_model():
    model = nn.Sequential(nn.Linear(4, 6), nn.LayerNorm(6), nn.GELU(), nn.Linear(6, 2))
    fill(model)
    return model

eager, lazy = build_model(), build_model()
opt_eager = flow.optim.Adam(eager.parameters(), lr=0.02)
opt_lazy = flow.optim.Adam(lazy.parameters(), lr=0.02)

class TrainGraph(nn.Graph):
    def __init__(self):
        super().__init__()
        self.m = lazy
        self.add_optimizer(opt_lazy)

    def build(self, x, y):
        loss = F.mse_loss(self.m(x), y)
        loss.backward()
        return loss

graph = TrainGraph()
for step in range(4):
    x, y = fixed(4, 4, seed=step), fixed(4, 2, seed=step + 50)
    loss = F.mse_loss(eager(x), y)
    opt_eager.zero_grad()
    loss.backward()
    opt_eager.step()
    show(f"losses {step}", (loss.item(), graph(x, y).item()))
show("same", flow.allclose(eager[0].weight, lazy[0].weight, atol=1e-5))
