import oneflow as flow
from shown import fixed, show

x = fixed(2, 3, 4)
show("permute", x.permute(2, 0, 1)[0])
show("transpose", x.transpose(1, 2).shape)
show("t", x[0].t())
show("T", x[0].T.shape)
show("swapaxes", flow.swapaxes(x, 0, 2).shape)
show("swapdims", flow.swapdims(x, 0, 1).shape)
show("movedim", flow.movedim(x, 0, -1).shape)
show("contiguous", (x.is_contiguous(), x.permute(1, 0, 2).is_contiguous(), x.permute(1, 0, 2).contiguous().is_contiguous()))
show("stride", x.stride())
