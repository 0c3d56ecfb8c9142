import oneflow as flow
from shown import show

x = flow.linspace(-0.9, 0.9, 7)
for name in ["sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "atanh"]:
    show(name, getattr(flow, name)(x))
show("acosh", flow.acosh(x.abs() + 1))
show("atan2", flow.atan2(x, x.flip(0) + 0.05))
