# ranks: 4
import oneflow as flow
from shown import show

P = flow.placement("cpu", [0, 1, 2, 3])
rank = flow.env.get_rank()
x = (flow.ones(4, 4) * (rank + 1)).to_global(P, flow.sbp.partial_sum)
show("x", x.sbp)
show("sum", x.to_global(sbp=flow.sbp.broadcast).to_local())
show("scattered", x.to_global(sbp=flow.sbp.split(0)).to_local())
show("split 1", x.to_global(sbp=flow.sbp.broadcast).to_global(sbp=flow.sbp.split(1)).to_local().shape)
show("numpy", x.numpy())
