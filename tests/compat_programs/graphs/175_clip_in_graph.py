import oneflow as flow
import oneflow.nn as nn
from shown import fill, fixed, show

model = nn.Linear(4, 2)
fill(model)
optimizer = flow.optim.SGD([{"params": model.parameters(), "lr": 0.1, "clip_grad_max_norm": 0.3, "clip_grad_norm_type": 2.0}])

class TrainGraph(nn.Graph):
    def __init__(self):
        super().__init__()
        self.model = model
        self.add_optimizer(optimizer)

    def build(self, x):
        loss = self.model(x).pow(2).sum()
        loss.backward()
        return loss

graph = TrainGraph()
show("losses", [graph(fixed(4, 4, seed=i)).item() for i in range(4)])
show("bias", model.bias.detach())
