import oneflow as flow
from shown import show

a = flow.tensor([1.0], requires_grad=True)
b = flow.tensor([2.0], requires_grad=True)
loss = (a * 3).sum()
loss.backward()
show("unused", b.grad is None)
plain = flow.ones(2)
try:
    plain.sum().backward()
    show("no graph", "no error")
except Exception as error:
    show("no graph", "error")
try:
    (a * flow.tensor([1.0, 2.0])).backward()
    show("not scalar", "no error")
except Exception as error:
    show("not scalar", "error")
with flow.no_grad():
    show("numpy", (a * 2).numpy())
show("detach numpy", a.detach().numpy())
