import oneflow as flow
from shown import fixed, show

x = fixed(2, 5)
show("cumsum", flow.cumsum(x, dim=1))
show("cumsum 0", x.cumsum(0))
show("cumprod", flow.cumprod(x, dim=1))
counts = flow.tensor([3, 1, 2])
ends = flow.cumsum(counts, dim=0)
show("starts", ends - counts)
