# ranks: 4
import oneflow as flow
from shown import fixed, show

P = flow.placement("cpu", ranks=[[0, 1], [2, 3]])
S0, S1, B = flow.sbp.split(0), flow.sbp.split(1), flow.sbp.broadcast
x = fixed(4, 6).to_global(P, [B, B]).to_global(sbp=[S0, B])
w = fixed(6, 8, seed=1).to_global(P, [B, B]).to_global(sbp=[B, S1])
y = flow.matmul(x, w)
show("y", (y.sbp, y.shape, y.to_local().shape))
v = fixed(8, 6, seed=2).to_global(P, [B, B]).to_global(sbp=[B, S0])
z = flow.matmul(y, v)
show("z", z.sbp)
show("value", z.numpy())
