import oneflow as flow
import oneflow.nn as nn
from shown import fill, fixed, show

model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
fill(model)

class TrainGraph(nn.Graph):
    def __init__(self, amp=False, zero=False):
        super().__init__()
        self.model = model
        if amp:
            self.config.enable_amp(True)
        if zero:
            self.config.enable_zero(True, stage=2, shard_min_size=1)
        self.add_optimizer(flow.optim.AdamW(model.parameters(), lr=0.01))

    def build(self, x):
        loss = self.model(x).pow(2).mean()
        loss.backward()
        return loss

graph = TrainGraph(zero=False)
show("losses", [graph(fixed(4, 4, seed=i)).item() for i in range(3)])
show("name", isinstance(graph.name, str))
