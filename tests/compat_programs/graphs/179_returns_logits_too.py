import oneflow as flow
import oneflow.nn as nn
import oneflow.nn.functional as F
from shown import fill, fixed, show

model = nn.Linear(4, 3)
fill(model)

class TrainGraph(nn.Graph):
    def __init__(self):
        super().__init__()
        self.model = model
        self.add_optimizer(flow.optim.AdamW(model.parameters(), lr=0.05))

    def build(self, x, y):
        logits = self.model(x)
        loss = F.cross_entropy(logits, y)
        loss.backward()
        return loss, logits

graph = TrainGraph()
y = flow.tensor([0, 2, 1, 1])
correct = 0
for step in range(4):
    loss, logits = graph(fixed(4, 4, seed=step), y)
    correct += (logits.argmax(dim=1) == y).sum().item()
show("loss", loss)
show("correct", correct)
