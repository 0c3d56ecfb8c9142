import oneflow as flow
from shown import show

P = flow.placement("cpu", ranks=[0])
B = flow.sbp.broadcast
x = flow.zeros(2, 3, placement=P, sbp=B)
show("zeros", x)
show("ones", flow.ones(3, placement=P, sbp=flow.sbp.split(0)))
show("full", flow.full((2, 2), 3.0, placement=P, sbp=[B]))
show("tensor", flow.tensor([1.0, 2.0], placement=P, sbp=flow.sbp.split(0)))
show("arange", flow.arange(4, placement=P, sbp=B))
show("attributes", (x.is_global, x.is_local, x.placement, x.sbp))
