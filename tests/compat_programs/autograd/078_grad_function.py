import oneflow as flow
from shown import show

x = flow.tensor([1.0, 2.0], requires_grad=True)
w = flow.tensor([3.0, 4.0], requires_grad=True)
loss = (x * w).sum() ** 2
gx, gw = flow.autograd.grad(loss, [x, w])
show("gx", gx)
show("gw", gw)
show("no grad kept", x.grad is None)
y = x * 2
show("outputs", flow.autograd.grad(y, x, flow.tensor([1.0, 0.5]))[0])
