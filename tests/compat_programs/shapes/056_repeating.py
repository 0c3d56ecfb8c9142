import oneflow as flow
from shown import show

x = flow.tensor([[1, 2], [3, 4]])
show("repeat", x.repeat(2, 3))
show("tile", x.tile((2,)))
show("interleave", flow.repeat_interleave(x, 2, dim=0))
show("flat", flow.repeat_interleave(x, 2))
show("counts", flow.repeat_interleave(x, flow.tensor([1, 3]), dim=1))
show("expand", x[:, :, None].expand(2, 2, 3)[0])
