import oneflow as flow
from shown import show

show("zeros", flow.zeros(2, 3))
show("ones", flow.ones((2, 2), dtype=flow.int32))
show("full", flow.full((2, 3), 7.5))
show("full int", flow.full((2,), 3, dtype=flow.int64))
show("eye", flow.eye(3))
show("eye 2x4", flow.eye(2, 4))
show("empty", flow.empty(3, 2).shape)
show("zeros of a Size", flow.zeros(flow.Size([2, 2])))
