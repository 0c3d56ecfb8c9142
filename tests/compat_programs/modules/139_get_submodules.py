from collections import OrderedDict

import oneflow as flow
import oneflow.nn as nn
from shown import show

model = nn.Sequential(OrderedDict([("stem", nn.Linear(2, 2)), ("body", nn.Sequential(nn.Linear(2, 2), nn.ReLU()))]))
show("named", [n for n, _ in model.named_modules()])
show("get", type(dict(model.named_modules())["body.1"]).__name__)
show("parameter", dict(model.named_parameters())["body.0.weight"].shape)
for name, module in model.named_children():
    if isinstance(module, nn.Linear):
        setattr(model, name, nn.Linear(2, 3))
show("replaced", model.stem.out_features)
show("count", sum(1 for _ in model.modules()))
