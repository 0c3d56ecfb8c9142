# ranks: 4
import oneflow as flow
from shown import show

P = flow.placement("cpu", ranks=[[0, 1], [2, 3]])
S0, S1, B = flow.sbp.split(0), flow.sbp.split(1), flow.sbp.broadcast
x = flow.arange(32, dtype=flow.float32).reshape(4, 8).to_global(P, [B, B])
for sbp in [[S0, S1], [S0, B], [B, S0], [S0, S0], [S1, B]]:
    y = x.to_global(sbp=sbp)
    show("local", (y.sbp, y.to_local()))
show("sum", x.to_global(sbp=[S0, S1]).sum().numpy())
