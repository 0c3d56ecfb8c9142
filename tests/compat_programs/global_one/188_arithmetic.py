import oneflow as flow
from shown import fixed, show

P, B, S0 = flow.placement("cpu", [0]), flow.sbp.broadcast, flow.sbp.split(0)
x = fixed(3, 4).to_global(P, S0)
w = fixed(4, 2, seed=1).to_global(P, B)
y = flow.matmul(x, w)
show("matmul", y)
show("relu", flow.relu(y))
show("sum", y.sum())
show("scalar", (x * 2 + 1).to_local())
show("item", y.mean().item())
