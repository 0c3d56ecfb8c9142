# ranks: 4
import oneflow as flow
from shown import fixed, show

P = flow.placement("cpu", [0, 1, 2, 3])
B, S0, PS = flow.sbp.broadcast, flow.sbp.split(0), flow.sbp.partial_sum
w = fixed(4, 2).to_global(P, B)
w.requires_grad = True
y = w.to_global(sbp=S0, grad_sbp=B)
(y * y).sum().backward()
show("sbp", w.grad.sbp)
show("grad", w.grad.numpy())
u = fixed(4, 2, seed=1).to_global(P, S0)
u.requires_grad = True
z = u.to_global(grad_sbp=S0, sbp=B)
(z * 3).sum().backward()
show("u", u.grad.numpy())
