import oneflow as flow
from shown import fixed, show

x = fixed(3, 5)
show("median", x.median())
values, indices = flow.median(x, dim=1)
show("values", values)
show("indices", indices)
show("quantile", flow.quantile(x, 0.25, dim=1))
show("all any", (flow.all(x > -5), flow.any(x > 5)))
show("any dim", flow.any(x > 1, dim=1))
show("all dim", (x > -1).all(dim=0))
