import tempfile

import oneflow as flow
from shown import fixed, show

with tempfile.TemporaryDirectory() as folder:
    for dtype in [flow.float32, flow.float64, flow.int32, flow.int64, flow.int8, flow.uint8, flow.bool, flow.float16]:
        flow.save((fixed(2, 3) * 3).to(dtype), folder + "/t")
        show(str(dtype).split(".")[-1], flow.load(folder + "/t"))
