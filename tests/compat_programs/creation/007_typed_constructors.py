import oneflow as flow
from shown import show

a = flow.Tensor([1.0, 2.0])
b = flow.FloatTensor([[1, 2], [3, 4]])
c = flow.LongTensor([1, 2, 3])
d = flow.IntTensor([4, 5])
e = flow.DoubleTensor([0.5])
for name, value in [("Tensor", a), ("Float", b), ("Long", c), ("Int", d), ("Double", e)]:
    show(name, value)
show("types", (a.type(), c.type()))
show("shape only", flow.Tensor(2, 3).shape)
