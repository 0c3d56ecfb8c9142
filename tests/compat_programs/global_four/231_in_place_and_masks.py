# ranks: 4
import oneflow as flow
from shown import fixed, show

P = flow.placement("cpu", [0, 1, 2, 3])
B, S0 = flow.sbp.broadcast, flow.sbp.split(0)
x = fixed(4, 4).to_global(P, B).to_global(sbp=S0)
x += 1
x.mul_(2)
show("x", (x.sbp, x.numpy()))
mask = flow.tril(flow.ones(4, 4, placement=P, sbp=B)).to_global(sbp=S0)
show("masked", x.masked_fill(mask == 0, -1.0).numpy())
show("where", flow.where(mask > 0, x, flow.zeros_like(x)).numpy())
show("mixed", (x + flow.ones(4, 4, placement=P, sbp=B)).sbp)
x.copy_(flow.zeros(4, 4, placement=P, sbp=S0))
show("copied", x.numpy().sum())
