import oneflow as flow
from oneflow import nn
from shown import fill, fixed, show

x = fixed(2, 4, 6)
layer = nn.LayerNorm(6)
show("layer", layer(x))
show("shape", nn.LayerNorm((4, 6), elementwise_affine=False)(x).sum(dim=-1))
group = nn.GroupNorm(2, 4)
fill(group)
show("group", group(x))
instance = nn.InstanceNorm1d(4)
show("instance", instance(x))
