import oneflow as flow
from oneflow import nn
from shown import fill, fixed, show

model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
fill(model)

class TrainGraph(nn.Graph):
    def __init__(self):
        super().__init__()
        self.model = model
        self.config.allow_fuse_cast_scale(True)
        self.add_optimizer(flow.optim.Adam(model.parameters(), lr=0.05))
        self.set_grad_scaler(flow.amp.StaticGradScaler(128.0))

    def build(self, x):
        loss = (self.model(x) - 0.5).pow(2).mean()
        loss.backward()
        return loss

graph = TrainGraph()
show("losses", [graph(fixed(4, 3, seed=i)).item() for i in range(4)])
