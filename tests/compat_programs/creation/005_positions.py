import numpy as np
import oneflow as flow
from shown import fixed, show

steps, width = 6, 4
position = flow.arange(0, steps, dtype=flow.float32).unsqueeze(1)
rate = flow.exp(flow.arange(0, width, 2, dtype=flow.float32) * (-np.log(10000.0) / width))
table = flow.zeros(steps, width)
table[:, 0::2] = flow.sin(position * rate)
table[:, 1::2] = flow.cos(position * rate)
show("table", table)
show("added", (fixed(2, steps, width) + table.unsqueeze(0)).sum(dim=(0, 1)))
