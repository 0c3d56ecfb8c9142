import oneflow as flow
import oneflow.nn as nn
from shown import fill, fixed, show

x = fixed(2, 3, 8, 8)
conv = nn.Conv2d(3, 4, kernel_size=3, stride=2, padding=1)
fill(conv)
y = conv(x)
show("y", y)
grouped = nn.Conv2d(4, 4, 3, padding=1, groups=4, bias=False)
fill(grouped, seed=2)
show("grouped", grouped(y).sum(dim=(2, 3)))
dilated = nn.Conv2d(3, 2, (3, 1), dilation=(2, 1))
fill(dilated, seed=5)
show("dilated", dilated(x).shape)
line = nn.Conv1d(2, 3, 3, padding=1)
fill(line, seed=6)
show("line", line(fixed(1, 2, 7)))
