import oneflow as flow
from shown import fixed, show

x = fixed(3, 4)
show("max", x.max())
values, indices = x.max(dim=1)
show("values", values)
show("indices", indices)
low = flow.min(x, dim=0)
show("min", low[0])
show("argmin", low[1])
show("amax", flow.amax(x, dim=(0, 1)))
show("amin", x.amin(dim=1, keepdim=True))
show("argmax", x.argmax())
show("argmax dim", flow.argmax(x, dim=0, keepdim=True))
