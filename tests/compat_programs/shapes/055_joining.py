import oneflow as flow
from shown import fixed, show

a, b = fixed(2, 3), fixed(2, 3, seed=1)
show("cat", flow.cat((a, b), dim=1))
show("concat", flow.concat([a, b], dim=0).shape)
show("stack", flow.stack([a, b], dim=1))
show("hstack", flow.hstack([a, b]).shape)
show("vstack", flow.vstack([a, b]).shape)
show("dstack", flow.dstack([a, b]).shape)
show("column", flow.column_stack((a[:, 0], b[:, 0])))
show("ints", flow.cat([flow.tensor([1, 2]), flow.tensor([3])]))
