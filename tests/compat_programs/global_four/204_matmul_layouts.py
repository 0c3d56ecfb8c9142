# ranks: 4
import oneflow as flow
from shown import fixed, show

P = flow.placement("cpu", [0, 1, 2, 3])
B, S0, S1 = flow.sbp.broadcast, flow.sbp.split(0), flow.sbp.split(1)
a, b = fixed(4, 8).to_global(P, B), fixed(8, 4, seed=1).to_global(P, B)
for name, sa, sb in [("S0 B", S0, B), ("B S1", B, S1), ("S1 S0", S1, S0), ("B B", B, B), ("S0 S1", S0, S1)]:
    y = flow.matmul(a.to_global(sbp=sa), b.to_global(sbp=sb))
    show(name, y.numpy())
    if name != "S0 S1":
        show("sbp " + name, y.sbp)
