import oneflow as flow
import oneflow.nn as nn
from shown import show

w = flow.empty(4, 6)
nn.init.orthogonal_(w)
show("orthogonal", flow.allclose(w @ w.t(), flow.eye(4), atol=1e-4))
for name in ["linear", "relu", "tanh", "sigmoid", "conv2d"]:
    show(name, nn.init.calculate_gain(name))
show("leaky", nn.init.calculate_gain("leaky_relu", 0.2))
