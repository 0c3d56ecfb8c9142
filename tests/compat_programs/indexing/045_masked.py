import oneflow as flow
from shown import fixed, show

x = fixed(3, 4)
mask = x > 0
show("select", flow.masked_select(x, mask))
show("fill", x.masked_fill(mask, 0.0))
y = x.clone()
y.masked_fill_(~mask, -9.0)
show("in place", y)
show("broadcast", x.masked_fill(flow.tensor([True, False, True, False]), 1.0))
