import oneflow as flow
import oneflow.nn.functional as F
from shown import show

x = flow.arange(6).reshape(2, 3)
show("flip", flow.flip(x, [0, 1]))
show("one dim", x.flip(1))
show("roll", flow.roll(x, 1))
show("dims", x.roll(shifts=(1, -1), dims=(0, 1)))
show("pad", F.pad(x.to(flow.float32), (1, 1)))
