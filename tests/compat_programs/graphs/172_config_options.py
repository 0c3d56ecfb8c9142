import oneflow as flow
import oneflow.nn as nn
from oneflow.nn import functional as F
from shown import fill, fixed, show

model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
fill(model)

class TrainGraph(nn.Graph):
    def __init__(self):
        super().__init__()
        self.model = model
        self.config.allow_fuse_model_update_ops(True)
        self.config.allow_fuse_add_to_output(True)
        self.config.allow_fuse_cast_scale(True)
        self.config.set_outputs_buffer_size(2)
        self.add_optimizer(flow.optim.Adam(model.parameters(), lr=0.01))

    def build(self, x, y):
        loss = F.mse_loss(self.model(x), y)
        loss.backward()
        return loss

graph = TrainGraph()
show("losses", [graph(fixed(4, 4, seed=i), flow.ones(4, 1)).item() for i in range(4)])
show("training", graph.config.training)
