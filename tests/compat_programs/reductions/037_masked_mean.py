import oneflow as flow
from shown import fixed, show

x = fixed(2, 5, 3)
lengths = flow.tensor([3, 5])
mask = (flow.arange(5)[None, :] < lengths[:, None]).unsqueeze(-1).to(x.dtype)
pooled = (x * mask).sum(dim=1) / mask.sum(dim=1)
show("pooled", pooled)
far = x.masked_fill(mask == 0, -1e9).max(dim=1)[0]
show("far", far)
