import oneflow as flow
import oneflow.nn as nn
from shown import fixed, show

x = fixed(1, 2, 6, 6)
show("max", nn.MaxPool2d(2)(x))
show("overlap", nn.MaxPool2d(3, stride=2, padding=1)(x))
show("avg", nn.AvgPool2d(2)(x))
show("padded", nn.AvgPool2d(3, 2, 1, count_include_pad=False)(x))
show("adaptive", nn.AdaptiveAvgPool2d((2, 3))(x))
show("one", nn.AdaptiveMaxPool2d(1)(x))
out, indices = nn.MaxPool2d(2, return_indices=True)(x)
show("indices", indices)
show("line", nn.AvgPool1d(3, 2)(x[0]))
