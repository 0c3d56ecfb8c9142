import oneflow as flow
import oneflow.nn as nn
from shown import fill, fixed, show

layer = nn.Linear(4, 3)
fill(layer)
x = fixed(2, 5, 4)
show("out", layer(x))
show("shapes", (layer.weight.shape, layer.bias.shape, layer.in_features, layer.out_features))
free = nn.Linear(4, 2, bias=False)
fill(free, seed=3)
show("no bias", (free(x).sum(), free.bias is None))
show("identity", nn.Identity()(x) is x)
