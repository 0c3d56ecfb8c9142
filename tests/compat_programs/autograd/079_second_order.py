import oneflow as flow
from shown import show

x = flow.tensor([1.0, -2.0], requires_grad=True)
y = (x**4).sum()
(first,) = flow.autograd.grad(y, x, create_graph=True)
(second,) = flow.autograd.grad(first.sum(), x)
show("first", first.detach())
show("second", second)
penalty = (first.norm() - 1) ** 2
show("penalty", penalty.item())
