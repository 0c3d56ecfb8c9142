import oneflow as flow
import oneflow.nn as nn
from shown import fill, fixed, show

model = nn.Linear(3, 2)
fill(model)
optimizer = flow.optim.SGD(model.parameters(), lr=0.1)

class TrainGraph(nn.Graph):
    def __init__(self):
        super().__init__()
        self.model = model
        self.add_optimizer(optimizer)
        self.config.set_gradient_accumulation_steps(2)

    def build(self, x):
        loss = self.model(x).pow(2).mean()
        loss.backward()
        return loss

graph = TrainGraph()
for step in range(3):
    loss = graph(fixed(8, 3, seed=step))
    show(f"loss {step}", loss)
show("weight", model.weight.detach())
