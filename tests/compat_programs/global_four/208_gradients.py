# ranks: 4
import oneflow as flow
from shown import fixed, show

P = flow.placement("cpu", [0, 1, 2, 3])
x = fixed(8, 3).to_global(P, flow.sbp.broadcast).to_global(sbp=flow.sbp.split(0))
w = fixed(3, 2, seed=1).to_global(P, flow.sbp.broadcast)
w.requires_grad = True
loss = flow.matmul(x, w).pow(2).sum()
loss.backward()
show("loss", loss.numpy())
show("grad", w.grad.numpy())
v = fixed(4, 4).to_global(P, flow.sbp.split(0))
v.requires_grad = True
(v.to_global(sbp=flow.sbp.broadcast) ** 2).sum().backward()
show("local grad", v.grad.to_local())
