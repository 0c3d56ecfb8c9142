import oneflow as flow
from oneflow.nn import functional as F
from shown import show

x = flow.linspace(-3, 3, 9)
for name in ["relu", "gelu", "sigmoid", "silu", "mish", "selu", "softplus", "softsign", "tanh"]:
    show(name, getattr(flow, name)(x))
show("softmax", flow.softmax(x.reshape(3, 3), dim=-1))
show("log_softmax", flow.log_softmax(x.reshape(3, 3), dim=0))
show("softshrink", F.softshrink(x, alpha=0.5))
