import oneflow as flow
from oneflow.nn import functional as F
from shown import show

theta = flow.tensor([[[0.8, 0.1, 0.0], [-0.1, 0.9, 0.2]]])
grid = F.affine_grid(theta, (1, 1, 4, 4), align_corners=True)
image = flow.arange(16, dtype=flow.float32).reshape(1, 1, 4, 4)
show("grid", grid)
show("sampled", F.grid_sample(image, grid, mode="bilinear", padding_mode="zeros", align_corners=True))
show("border", F.grid_sample(image, grid * 1.5, mode="nearest", padding_mode="border", align_corners=False))
