import oneflow as flow
from shown import fixed, show

P = flow.placement("cpu", ranks=[0])
local = fixed(4, 2)
x = local.to_global(placement=P, sbp=flow.sbp.split(0))
show("x", x)
show("local", x.to_local())
show("moved", x.to_global(sbp=flow.sbp.broadcast))
show("function", flow.to_global(local, placement=P, sbp=flow.sbp.partial_sum).sbp)
show("is", (local.is_global, x.is_global, x.to_local().is_global))
