# ranks: 4
import oneflow as flow
from shown import fixed, show

P, first, last = flow.placement("cpu", [0, 1, 2, 3]), flow.placement("cpu", [0, 1]), flow.placement("cpu", [2, 3])
x = fixed(4, 4).to_global(P, flow.sbp.broadcast)
a = x.to_global(first, flow.sbp.split(0))
show("a", (a.placement, a.sbp, a.shape))
b = (a * 2).to_global(last, flow.sbp.broadcast)
show("b", b.placement)
c = b.to_global(P, flow.sbp.broadcast)
show("c", c.numpy())
