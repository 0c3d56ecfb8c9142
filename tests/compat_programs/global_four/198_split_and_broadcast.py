# ranks: 4
import oneflow as flow
from shown import show

P = flow.placement("cpu", [0, 1, 2, 3])
rank = flow.env.get_rank()
x = flow.arange(8, dtype=flow.float32).reshape(4, 2).to_global(P, flow.sbp.broadcast).to_global(sbp=flow.sbp.split(0))
show("local", x.to_local())
y = (flow.ones(1, 3) * rank).to_global(P, flow.sbp.split(0))
show("y", y)
show("logical", y.shape)
b = y.to_global(sbp=flow.sbp.broadcast)
show("b", b.to_local())
show("split 1", flow.ones(2, 8, placement=P, sbp=flow.sbp.split(1)).to_local().shape)
