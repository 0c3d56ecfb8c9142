import oneflow as flow
from shown import fixed, show

x = fixed(4, 6)
show("select", flow.select(x, 1, 2))
show("narrow", flow.narrow(x, 0, 1, 2))
show("method", x.narrow(1, 3, 3))
parts = flow.split(x, 2, dim=1)
show("split", [p.shape for p in parts])
show("sizes", [p.sum().item() for p in flow.split(x, [1, 2, 3], dim=1)])
a, b = x.chunk(2, dim=0)
show("a", a)
show("unbind", [t.sum().item() for t in flow.unbind(x, dim=0)])
show("hsplit", [t.shape for t in flow.hsplit(x, 3)])
