import oneflow as flow
from shown import fixed, show

P, S0 = flow.placement("cpu", [0]), flow.sbp.split(0)
x = fixed(3, 4).to_global(P, S0)
x.requires_grad = True
w = flow.ones(4, 2, placement=P, sbp=flow.sbp.broadcast, requires_grad=True)
flow.matmul(x, w).pow(2).sum().backward()
show("x", x.grad.to_local())
show("w", w.grad.to_local())
show("global", (x.grad.is_global, w.grad.placement == P))
