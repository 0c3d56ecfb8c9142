import oneflow as flow
from shown import show

x = flow.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = x * 2
y.add_(1)
y.mul_(y.detach())
y.sum().backward()
show("grad", x.grad)
a = flow.zeros(3)
a += flow.ones(3)
a -= 0.5
a *= 4
a /= 2
show("a", a)
try:
    x.add_(1)
    show("leaf", "no error")
except RuntimeError:
    show("leaf", "RuntimeError")
except Exception:
    show("leaf", "Exception")
