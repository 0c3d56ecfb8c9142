import oneflow as flow
from shown import fixed, show

x, y = fixed(2, 3), fixed(2, 3, seed=1)
show("add", x + y)
show("sub", x - 2)
show("rsub", 2 - x)
show("mul", x * y)
show("div", x / (y.abs() + 1))
show("rdiv", 1 / (x.abs() + 1))
show("neg", -x)
show("pow", x.abs() ** 1.5)
show("rpow", 2 ** x)
show("alpha", flow.add(x, y, alpha=0.5))
show("sub alpha", flow.sub(x, y, alpha=2))
