import oneflow as flow
from shown import fixed, show

x = flow.tensor([1.0, 2.0], requires_grad=True)
y = x * 2
z = y.detach() * x
z.sum().backward()
show("grad", x.grad)
show("detached", (y.detach().requires_grad, y.requires_grad))
target = fixed(2)
online = x * 1.5
((online - target.detach()) ** 2).mean().backward()
show("grad 2", x.grad)
