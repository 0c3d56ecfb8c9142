import oneflow as flow
from shown import fixed, show

x = fixed(3, 5)
show("mean", x.mean())
show("mean dim", x.mean(dim=0))
show("var", x.var(dim=1))
show("var biased", flow.var(x, dim=1, unbiased=False))
show("std", x.std(dim=0))
show("std all", flow.std(x, dim=(0, 1), unbiased=False, keepdim=True))
show("normal form", (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True))
