from collections import OrderedDict
import tempfile

import oneflow as flow
from oneflow import nn
from shown import fill, show

source = nn.Sequential(OrderedDict([("backbone", nn.Linear(3, 4)), ("fc", nn.Linear(4, 10))]))
fill(source)
with tempfile.TemporaryDirectory() as folder:
    flow.save(source.state_dict(), folder + "/pretrained")
    state = flow.load(folder + "/pretrained", map_location="cpu")
target = nn.Sequential(OrderedDict([("body", nn.Linear(3, 4)), ("head", nn.Linear(4, 2))]))
renamed = {k.replace("backbone", "body"): v for k, v in state.items() if "fc" not in k}
info = target.load_state_dict(renamed, strict=False)
show("missing", info.missing_keys)
show("body", target.body.weight.detach())
