import oneflow as flow
from shown import show

x = flow.tensor([2.0, 3.0], requires_grad=True)
h = x * x
h.retain_grad()
loss = h.sum()
loss.backward(retain_graph=True)
loss.backward()
show("x", x.grad)
show("h", h.grad)
try:
    loss.backward()
    show("third", "no error")
except RuntimeError:
    show("third", "RuntimeError")
except Exception:
    show("third", "Exception")
