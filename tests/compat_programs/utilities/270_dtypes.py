import oneflow as flow
from shown import fixed, show

show("names", [flow.float32, flow.float64, flow.int8, flow.uint8, flow.int32, flow.int64, flow.bool, flow.float16, flow.bfloat16])
show("equal", (flow.float is flow.float32, flow.long == flow.int64, flow.double == flow.float64))
x = flow.ones(2, dtype=flow.int32)
show("floating", (flow.is_floating_point(x), x.is_floating_point(), fixed(2).is_floating_point()))
show("bytes", (x.element_size(), x.to(flow.float64).element_size()))
show("floating dtype", (flow.float32.is_floating_point, flow.int64.is_floating_point))
