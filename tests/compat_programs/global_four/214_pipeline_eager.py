# ranks: 4
import oneflow as flow
import oneflow.nn as nn
from oneflow.nn import functional as F
from shown import fill, fixed, show

first, second = flow.placement("cpu", [0, 1]), flow.placement("cpu", [2, 3])
B, S0 = flow.sbp.broadcast, flow.sbp.split(0)

class Pipeline(nn.Module):
    def __init__(self):
        super().__init__()
        self.stage0, self.stage1 = nn.Linear(4, 6), nn.Linear(6, 2)
        fill(self.stage0)
        fill(self.stage1, seed=7)
        self.stage0.to_global(first, B)
        self.stage1.to_global(second, B)

    def forward(self, x):
        h = F.relu(self.stage0(x))
        return self.stage1(h.to_global(second, S0))

model = Pipeline()
x = fixed(4, 4).to_global(flow.placement("cpu", [0, 1, 2, 3]), B).to_global(first, S0)
out = model(x)
loss = out.pow(2).mean()
loss.backward()
every = flow.placement("cpu", [0, 1, 2, 3])
show("out", (out.placement, out.to_global(every, B).numpy()))
show("grad", model.stage0.weight.grad.to_global(every, B).numpy())
show("grad 1", model.stage1.weight.grad.to_global(every, B).numpy())
