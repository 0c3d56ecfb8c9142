from collections import OrderedDict

import oneflow as flow
import oneflow.nn as nn
from shown import fill, fixed, show

model = nn.Sequential(OrderedDict([("fc1", nn.Linear(3, 4)), ("relu", nn.ReLU()), ("fc2", nn.Linear(4, 1))]))
fill(model)
show("out", model(fixed(2, 3)))
show("names", list(model.state_dict().keys()))
show("index", (type(model[1]).__name__, len(model), type(model[:2]).__name__))
plain = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
plain.add_module("last", nn.Linear(3, 2))
show("added", [n for n, _ in plain.named_children()])
show("iter", [type(m).__name__ for m in plain])
