import oneflow as flow
import oneflow.nn as nn
from shown import fixed, show

layer = nn.utils.weight_norm(nn.Linear(3, 2), name="weight")
show("names", sorted(n for n, _ in layer.named_parameters()))
with flow.no_grad():
    layer.weight_g.copy_(flow.ones(2, 1) * 2)
    layer.weight_v.copy_(fixed(2, 3))
    layer.bias.zero_()
show("out", layer(fixed(4, 3, seed=1)))
layer = nn.utils.remove_weight_norm(layer)
show("removed", sorted(n for n, _ in layer.named_parameters()))
