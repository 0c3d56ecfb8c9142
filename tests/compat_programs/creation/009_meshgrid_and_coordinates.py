import oneflow as flow
from shown import show

ys = flow.arange(3, dtype=flow.float32)
xs = flow.arange(4, dtype=flow.float32)
gy, gx = flow.meshgrid(ys, xs)
show("gy", gy)
show("gx", gx)
coordinates = flow.stack([gx, gy], dim=0).flatten(1)
show("coordinates", coordinates)
relative = coordinates[:, :, None] - coordinates[:, None, :]
show("relative", (relative.shape, relative.permute(1, 2, 0).sum(dim=1)))
