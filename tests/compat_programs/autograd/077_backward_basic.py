import oneflow as flow
from shown import show

x = flow.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = (x * x).sum()
y.backward()
show("grad", x.grad)
z = (x**3).sum()
z.backward()
show("accumulated", x.grad)
x.grad = None
(x.exp().mean()).backward()
show("fresh", x.grad)
show("flags", (y.requires_grad, y.is_leaf, x.is_leaf))
