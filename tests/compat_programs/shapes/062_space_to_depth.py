import oneflow as flow
import oneflow.nn as nn
from shown import show

x = flow.arange(32, dtype=flow.float32).reshape(1, 2, 4, 4)
b, c, h, w = x.shape
y = x.reshape(b, c, h // 2, 2, w // 2, 2).permute(0, 1, 3, 5, 2, 4).reshape(b, c * 4, h // 2, w // 2)
show("down", y)
show("up", nn.PixelShuffle(2)(y))
show("windows", x.reshape(1, 2, 2, 2, 2, 2).permute(0, 2, 4, 3, 5, 1).reshape(-1, 4, 2).sum(dim=1))
