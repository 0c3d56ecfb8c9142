import oneflow as flow
from shown import show

show("hann", flow.hann_window(6, periodic=True))
v = flow.tensor([1.0, 2.0, 3.0])
show("diag", flow.diag(v))
show("diag of", flow.diag(flow.arange(9, dtype=flow.float32).reshape(3, 3), 1))
show("tile", flow.tile(v, (2, 2)))
show("repeat", v.repeat(2, 1))
show("cat", flow.cat([v, v * 2], dim=0))
