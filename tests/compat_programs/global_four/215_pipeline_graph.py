# ranks: 4
import oneflow as flow
import oneflow.nn as nn
import oneflow.nn.functional as F
from shown import fill, fixed, show

P0, P1 = flow.placement("cpu", [0, 1]), flow.placement("cpu", [2, 3])
B, S0 = flow.sbp.broadcast, flow.sbp.split(0)

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.stage0, self.stage1 = nn.Linear(4, 6), nn.Linear(6, 2)
        fill(self.stage0)
        fill(self.stage1, seed=7)
        self.stage0.to_global(P0, B)
        self.stage1.to_global(P1, B)

    def forward(self, x):
        h = F.relu(self.stage0(x.to_global(P0, S0)))
        return self.stage1(h.to_global(P1, S0))

class TrainGraph(nn.Graph):
    def __init__(self):
        super().__init__()
        self.model = Model()
        self.model.stage0.to(nn.graph.GraphModule).set_stage(stage_id=0, placement=P0)
        self.model.stage1.to(nn.graph.GraphModule).set_stage(stage_id=1, placement=P1)
        self.config.set_gradient_accumulation_steps(2)
        self.add_optimizer(flow.optim.SGD(self.model.parameters(), lr=0.1))

    def build(self, x):
        loss = self.model(x).pow(2).mean()
        loss.backward()
        return loss

every = flow.placement("cpu", [0, 1, 2, 3])
graph = TrainGraph()
for step in range(3):
    x = fixed(8, 4, seed=step).to_global(every, B).to_global(P0, S0)
    loss = graph(x)
    show(f"loss {step}", loss.to_global(every, B).numpy().mean())
