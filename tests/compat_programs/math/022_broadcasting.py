import oneflow as flow
from shown import fixed, show

x = fixed(3, 1, 4)
y = fixed(2, 1, seed=1)
show("shape", (x + y).shape)
show("sum", (x * y).sum(dim=-1))
a, b = flow.broadcast_tensors(flow.arange(3).reshape(1, 3), flow.arange(2).reshape(2, 1))
show("a", a)
show("b", b)
show("expand", flow.tensor([[1.0], [2.0]]).expand(2, 3))
show("expand_as", flow.tensor([1.0, 2.0]).expand_as(flow.zeros(3, 2)))
show("expand -1", flow.ones(2, 1).expand(-1, 3))
show("shapes", flow.broadcast_shapes((3, 1), (1, 4)))
