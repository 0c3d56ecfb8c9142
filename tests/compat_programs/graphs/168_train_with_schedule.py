import oneflow as flow
from oneflow import nn
from shown import fill, fixed, show

model = nn.Linear(3, 1)
fill(model)
optimizer = flow.optim.SGD(model.parameters(), lr=0.1)
scheduler = flow.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.1)

class TrainGraph(nn.Graph):
    def __init__(self):
        super().__init__()
        self.model = model
        self.add_optimizer(optimizer, lr_sch=scheduler)

    def build(self, x):
        loss = self.model(x).pow(2).mean()
        loss.backward()
        return loss

graph = TrainGraph()
weights = []
for step in range(5):
    graph(fixed(4, 3, seed=step))
    weights.append(model.weight.detach().clone())
for i, w in enumerate(weights):
    show(f"step {i}", w)
