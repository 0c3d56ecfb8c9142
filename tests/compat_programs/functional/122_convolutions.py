import oneflow as flow
from oneflow.nn import functional as F
from shown import fixed, show

x, w = fixed(1, 2, 5, 5), fixed(3, 2, 3, 3, seed=1)
show("conv2d", F.conv2d(x, w, padding=1))
show("bias", F.conv2d(x, w, bias=fixed(3), stride=2))
show("transpose", F.conv_transpose2d(fixed(1, 3, 2, 2), w, stride=2).shape)
show("conv1d", F.conv1d(fixed(1, 2, 6), fixed(4, 2, 3, seed=2), padding=1))
blur = flow.ones(2, 1, 3, 3) / 9.0
show("depthwise", F.conv2d(x, blur, padding=1, groups=2))
