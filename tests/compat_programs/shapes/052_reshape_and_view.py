import oneflow as flow
from shown import show

x = flow.arange(24, dtype=flow.float32).reshape(2, 3, 4)
show("view", x.view(6, 4).shape)
show("infer", x.reshape(-1, 2).shape)
show("flatten", x.flatten(1).shape)
show("flatten all", flow.flatten(x).shape)
show("view_as", x.view_as(flow.zeros(4, 6)).sum(dim=1))
show("reshape_as", x.reshape_as(flow.zeros(8, 3))[0])
show("tuple", x.view((4, -1)).shape)
show("size", x.size())
