import oneflow as flow
from oneflow import nn
from shown import show

x = flow.linspace(-3, 3, 8).reshape(2, 4)
for layer in [nn.ReLU(), nn.GELU(), nn.SiLU(), nn.Mish(), nn.ELU(0.5), nn.CELU(), nn.SELU(), nn.Hardswish(), nn.Hardsigmoid(), nn.Softplus(), nn.LeakyReLU(0.2), nn.ReLU6(), nn.Hardtanh(-1, 2), nn.LogSigmoid(), nn.Softsign(), nn.Softmax(dim=1), nn.LogSoftmax(dim=1), nn.GLU(dim=1), nn.Threshold(0.1, 5.0), nn.PReLU(), nn.QuickGELU(), nn.Hardshrink(1.0)]:
    show(type(layer).__name__, layer(x))
