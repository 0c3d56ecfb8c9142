import oneflow as flow
import oneflow.nn.functional as F
from shown import show

x = flow.arange(16, dtype=flow.float32).reshape(1, 1, 4, 4)
show("nearest", F.interpolate(x, scale_factor=0.5))
show("bilinear", F.interpolate(x, size=(3, 3), mode="bilinear", align_corners=False))
show("aligned", F.interpolate(x, size=(6, 6), mode="bilinear", align_corners=True))
show("bicubic", F.interpolate(x, scale_factor=2.0, mode="bicubic", align_corners=False).mean())
show("linear", F.interpolate(x[0], size=8, mode="linear", align_corners=False))
