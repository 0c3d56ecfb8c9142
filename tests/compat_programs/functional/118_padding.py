import oneflow as flow
from oneflow.nn import functional as F
from shown import show

x = flow.arange(6, dtype=flow.float32).reshape(1, 1, 2, 3)
show("constant", F.pad(x, (1, 2), value=9.0))
show("all", F.pad(x, (1, 1, 0, 2), "constant", 0.0).shape)
show("reflect", F.pad(x, (1, 1, 1, 1), mode="reflect"))
show("replicate", F.pad(x, (2, 0, 0, 1), mode="replicate"))
show("crop", F.pad(x, (-1, 0)))
