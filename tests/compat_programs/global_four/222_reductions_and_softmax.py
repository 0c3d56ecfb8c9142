# ranks: 4
import oneflow as flow
from shown import fixed, show

P = flow.placement("cpu", [0, 1, 2, 3])
B, S0, S1 = flow.sbp.broadcast, flow.sbp.split(0), flow.sbp.split(1)
x = fixed(4, 8).to_global(P, B)
for name, sbp in [("S0", S0), ("S1", S1), ("B", B)]:
    y = x.to_global(sbp=sbp)
    show("sum " + name, y.sum(dim=1).numpy())
    show("softmax " + name, flow.softmax(y, dim=1).numpy())
    show("max " + name, y.max().numpy())
    show("argmax " + name, y.argmax(dim=0).numpy())
    show("std " + name, y.std(dim=0).numpy())
s = x.to_global(sbp=S0)
show("elementwise", (s.exp().sbp, s.sum(dim=0).sbp, s.sum(dim=1).sbp, s.t().sbp))
