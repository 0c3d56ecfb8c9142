import oneflow as flow
from shown import fixed, show

x = fixed(2, 3, 4)
show("all", x.sum())
show("dim", x.sum(dim=1))
show("dims", x.sum(dim=(0, 2)))
show("keep", flow.sum(x, dim=-1, keepdim=True))
show("prod", flow.prod(x, dim=0))
show("bool sum", (x > 0).sum())
show("int mean", flow.arange(5).to(flow.float32).mean())
