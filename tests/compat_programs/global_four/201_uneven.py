# ranks: 4
import oneflow as flow
from shown import show

P = flow.placement("cpu", [0, 1, 2, 3])
x = flow.arange(10, dtype=flow.float32).to_global(P, flow.sbp.broadcast).to_global(sbp=flow.sbp.split(0))
show("local", x.to_local())
show("sum", x.sum().numpy())
y = (x * 2 + 1).to_global(sbp=flow.sbp.broadcast)
show("y", y.to_local())
m = flow.ones(6, 7, placement=P, sbp=flow.sbp.split(1))
show("m", m.to_local().shape)
show("mean", m.mean(dim=1).numpy())
