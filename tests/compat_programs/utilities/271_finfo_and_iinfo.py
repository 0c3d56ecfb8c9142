import oneflow as flow
from shown import show

for dtype in [flow.float16, flow.float32, flow.float64]:
    info = flow.finfo(dtype)
    show(str(dtype).split(".")[-1], (info.bits, info.max, info.min, info.eps, info.tiny))
for dtype in [flow.int8, flow.uint8, flow.int32, flow.int64]:
    info = flow.iinfo(dtype)
    show(str(dtype).split(".")[-1], (info.bits, info.max, info.min))
