# ranks: 4
import oneflow as flow
from shown import fixed, show

P = flow.placement("cpu", [0, 1, 2, 3])
x = fixed(8, 4).to_global(P, flow.sbp.broadcast).to_global(sbp=flow.sbp.split(0))
w = fixed(4, 6, seed=1).to_global(P, flow.sbp.broadcast)
y = flow.matmul(x, w)
show("sbp", y.sbp)
show("shape", (y.shape, y.to_local().shape))
show("value", y.numpy())
