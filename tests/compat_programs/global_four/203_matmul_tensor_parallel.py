# ranks: 4
import oneflow as flow
from shown import fixed, show

P = flow.placement("cpu", [0, 1, 2, 3])
B, S0, S1 = flow.sbp.broadcast, flow.sbp.split(0), flow.sbp.split(1)
x = fixed(2, 8).to_global(P, B)
column = fixed(8, 4, seed=1).to_global(P, B).to_global(sbp=S1)
row = fixed(4, 8, seed=2).to_global(P, B).to_global(sbp=S0)
h = flow.matmul(x, column)
y = flow.matmul(flow.relu(h), row)
show("h", (h.sbp, h.to_local().shape))
show("y", y.sbp)
show("value", y.to_global(sbp=B).to_local())
