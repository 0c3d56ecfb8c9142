import oneflow as flow
from shown import show

x = flow.arange(24).reshape(2, 3, 4)
show("row", x[1])
show("element", x[0, 1, 2])
show("slice", x[:, 1:, ::2])
show("negative", x[-1, -2:, -1])
show("ellipsis", x[..., 0])
show("new dim", x[:, None, 0].shape)
show("step", x[0, ::2, 1:4:2])
