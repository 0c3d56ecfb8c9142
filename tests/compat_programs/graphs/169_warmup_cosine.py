import oneflow as flow
import oneflow.nn as nn
from shown import fill, fixed, show

model = nn.Linear(3, 1)
fill(model)
optimizer = flow.optim.AdamW(model.parameters(), lr=0.1)
scheduler = flow.optim.lr_scheduler.CosineDecayLR(optimizer, decay_steps=6)
scheduler = flow.optim.lr_scheduler.WarmUpLR(scheduler, warmup_factor=0.25, warmup_iters=2)

class TrainGraph(nn.Graph):
    def __init__(self):
        super().__init__()
        self.model = model
        self.add_optimizer(optimizer, lr_sch=scheduler)

    def build(self, x):
        loss = (self.model(x) - 1.0).pow(2).mean()
        loss.backward()
        return loss

graph = TrainGraph()
show("losses", [graph(fixed(4, 3, seed=i)).item() for i in range(7)])
show("weight", model.weight.detach())
