import oneflow as flow
import oneflow.nn as nn
from shown import fixed, show

norm = nn.BatchNorm2d(3)
x = fixed(4, 3, 2, 2)
y = norm(x)
show("train", y)
show("mean", norm.running_mean)
show("var", norm.running_var)
show("batches", norm.num_batches_tracked)
norm.eval()
show("eval", norm(x))
plain = nn.BatchNorm1d(3, affine=False, track_running_stats=False)
show("plain", plain(fixed(6, 3)))
