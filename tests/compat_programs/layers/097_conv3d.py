import oneflow as flow
import oneflow.nn as nn
from shown import fill, fixed, show

conv = nn.Conv3d(1, 2, kernel_size=(1, 3, 3), padding=(0, 1, 1))
fill(conv)
x = fixed(1, 1, 2, 4, 4)
y = conv(x)
show("y", y)
show("pool", nn.MaxPool3d(2)(y))
show("adaptive", nn.AdaptiveAvgPool3d(1)(y))
