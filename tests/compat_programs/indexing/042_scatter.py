import oneflow as flow
from shown import fixed, show

x = flow.zeros(3, 5)
index = flow.tensor([[0, 1, 2], [2, 3, 4], [0, 0, 1]])
src = fixed(3, 3)
show("scatter", flow.scatter(x, 1, index[:2], src[:2]))
show("add", flow.scatter_add(x, 1, index, src))
y = flow.zeros(3, 5)
y.scatter_(1, flow.tensor([[1], [3], [0]]), 1.0)
show("one hot", y)
z = flow.zeros(3, 5)
z.scatter_add_(1, index, src)
show("in place", z)
show("value", flow.scatter(x, 0, flow.tensor([[2, 0, 1, 1, 0]]), 3.0))
