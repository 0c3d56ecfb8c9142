import oneflow as flow
from shown import show

x = flow.tensor([1.0, 2.0, 3.0])
y = flow.tensor([3.0, 2.0, 1.0])
show("eq", x == y)
show("ne", x != y)
show("lt", x < y)
show("ge", flow.ge(x, 2))
show("gt", x.gt(y))
show("le", flow.le(x, y))
show("allclose", flow.allclose(x, x + 1e-9))
show("isclose", flow.isclose(x, y))
show("equal", flow.equal(x, x.clone()))
show("all any", ((x > 0).all().item(), (x > 2).any().item()))
