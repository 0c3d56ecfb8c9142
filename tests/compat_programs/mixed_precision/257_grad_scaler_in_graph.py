import oneflow as flow
import oneflow.nn as nn
from shown import fill, fixed, show

model = nn.Linear(3, 2)
fill(model)

class TrainGraph(nn.Graph):
    def __init__(self):
        super().__init__()
        self.model = model
        self.add_optimizer(flow.optim.SGD(model.parameters(), lr=0.1))
        self.set_grad_scaler(flow.amp.GradScaler(init_scale=8.0, growth_factor=2.0, backoff_factor=0.5, growth_interval=2))

    def build(self, x):
        loss = self.model(x).pow(2).mean()
        loss.backward()
        return loss

graph = TrainGraph()
show("losses", [graph(fixed(4, 3, seed=i)).item() for i in range(4)])
show("weight", model.weight.detach())
