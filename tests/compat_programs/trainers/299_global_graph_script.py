# ranks: 4
import oneflow as flow
import oneflow.nn as nn
from shown import fill, fixed, show

P = flow.placement.all("cpu")
B, S0 = flow.sbp.broadcast, flow.sbp.split(0)
rank = flow.env.get_rank()
model = nn.Sequential(nn.Linear(3, 8), nn.GELU(), nn.Linear(8, 2))
fill(model)
model = model.to_global(placement=P, sbp=B)
optimizer = flow.optim.AdamW(model.parameters(), lr=0.05)
scheduler = flow.optim.lr_scheduler.CosineDecayLR(optimizer, decay_steps=8, alpha=0.1)

class TrainGraph(nn.Graph):
    def __init__(self):
        super().__init__()
        self.model = model
        self.loss = nn.CrossEntropyLoss()
        self.add_optimizer(optimizer, lr_sch=scheduler)

    def build(self, x, y):
        loss = self.loss(self.model(x), y)
        loss.backward()
        return loss

class EvalGraph(nn.Graph):
    def __init__(self):
        super().__init__()
        self.model = model

    def build(self, x):
        return self.model(x).to_global(sbp=B)

train, evaluate = TrainGraph(), EvalGraph()
for step in range(3):
    x = fixed(2, 3, seed=step * 4 + rank).to_global(P, S0)
    y = flow.tensor([rank % 2, 1]).to_global(P, S0)
    loss = train(x, y).to_global(P, B).to_local()
    show(f"step {step}", loss)
model.eval()
show("eval", evaluate(fixed(1, 3, seed=rank).to_global(P, S0)).to_local())
show("state", {k: v.numpy().sum() for k, v in model.state_dict().items()})
