import oneflow as flow
from shown import show

x = flow.tensor([1.0, 2.0], requires_grad=True)
seen = []
x.register_hook(lambda g: g * 2)
y = x * 3
y.register_hook(lambda g: seen.append(g.sum().item()))
y.sum().backward()
show("doubled", x.grad)
show("seen", seen)
