import oneflow as flow
from oneflow import nn
from shown import show

def initialise(module):
    if isinstance(module, nn.Linear):
        nn.init.constant_(module.weight, 0.5)
        nn.init.zeros_(module.bias)

model = nn.Sequential(nn.Linear(2, 3), nn.Dropout(0.5), nn.Sequential(nn.Linear(3, 1)))
model.apply(initialise)
model.eval()
show("out", model(flow.ones(1, 2)))
show("modes", [m.training for m in model.modules()])
model.train()
show("train", all(m.training for m in model.modules()))
model[1].eval()
show("one", [m.training for m in model.children()])
