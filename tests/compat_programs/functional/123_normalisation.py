import oneflow as flow
import oneflow.nn.functional as F
from shown import fixed, show

x = fixed(3, 4)
show("layer", F.layer_norm(x, (4,)))
show("affine", F.layer_norm(x, (4,), weight=flow.ones(4) * 2, bias=flow.ones(4), eps=1e-6))
mean, var = flow.zeros(4), flow.ones(4)
show("eval", F.batch_norm(x, mean, var, training=False))
show("train", F.batch_norm(x, mean, var, training=True, momentum=0.1))
show("running", mean)
