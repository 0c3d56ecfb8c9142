import oneflow as flow
import oneflow.nn as nn
from shown import fill, fixed, show

model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
fill(model)
features = {}

def keep(name):
    def hook(module, inputs, output):
        features[name] = output.detach()

    return hook

for name, child in model.named_children():
    child.register_forward_hook(keep(name))
model[0].register_forward_pre_hook(lambda module, inputs: (inputs[0] * 2,))
show("out", model(fixed(2, 3)))
show("features", features)
