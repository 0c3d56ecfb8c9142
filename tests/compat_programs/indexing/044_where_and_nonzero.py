import oneflow as flow
from shown import show

x = flow.tensor([[0.0, 1.5, 0.0], [2.0, 0.0, -1.0]])
show("nonzero", flow.nonzero(x))
rows, columns = flow.nonzero(x, as_tuple=True)
show("rows", rows)
show("columns", columns)
show("argwhere", flow.argwhere(x))
show("where", flow.where(x > 0, x, -x))
show("scalar", flow.where(x > 0, x, flow.tensor(9.0)))
show("tuple", [t.tolist() for t in flow.where(x == 0)])
show("method", (x > 0).where(x, flow.zeros_like(x)))
