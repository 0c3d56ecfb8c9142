import oneflow as flow
from oneflow import nn
from oneflow.nn import functional as F
from shown import fixed, show

x, y = fixed(3, 4), fixed(3, 4, seed=1)
show("mse", F.mse_loss(x, y))
show("l1", F.l1_loss(x, y, reduction="sum"))
show("smooth", F.smooth_l1_loss(x, y, beta=0.5, reduction="mean"))
show("MSE none", nn.MSELoss(reduction="none")(x, y))
show("SmoothL1", nn.SmoothL1Loss()(x, y))
