import oneflow as flow
from shown import fixed, show

x = fixed(1, 3, 1, 2)
show("squeeze", x.squeeze().shape)
show("dim", x.squeeze(0).shape)
show("no dim", x.squeeze(1).shape)
show("unsqueeze", x.unsqueeze(-1).shape)
show("at least", [flow.atleast_1d(flow.tensor(1.0)).shape, flow.atleast_2d(flow.ones(3)).shape, flow.atleast_3d(flow.ones(3)).shape])
show("none", x[None].shape)
