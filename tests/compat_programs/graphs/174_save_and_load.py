import oneflow as flow
from oneflow import nn
from shown import fill, fixed, show

model = nn.Linear(3, 2)
fill(model)
optimizer = flow.optim.Adam(model.parameters(), lr=0.1)

def make(model, optimizer):
    class TrainGraph(nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = model
            self.add_optimizer(optimizer)

        def build(self, x):
            loss = self.model(x).pow(2).mean()
            loss.backward()
            return loss

    return TrainGraph()

graph = make(model, optimizer)
for step in range(3):
    graph(fixed(4, 3, seed=step))
state = graph.state_dict()
import tempfile

with tempfile.TemporaryDirectory() as folder:
    flow.save(state, folder + "/graph")
    loaded = flow.load(folder + "/graph")
going = [graph(fixed(4, 3, seed=step)).item() for step in range(3, 6)]
other = nn.Linear(3, 2)
resumed = make(other, flow.optim.Adam(other.parameters(), lr=0.1))
resumed.load_state_dict(loaded)
show("going", going)
show("resumed", [resumed(fixed(4, 3, seed=step)).item() for step in range(3, 6)])
