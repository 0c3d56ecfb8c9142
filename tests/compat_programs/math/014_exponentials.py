import oneflow as flow
from shown import fixed, show

x = fixed(6).abs() + 0.1
for name in ["exp", "expm1", "log", "log1p", "log2", "log10", "sqrt", "rsqrt", "square", "reciprocal"]:
    show(name, getattr(flow, name)(x))
    show("method " + name, getattr(x, name)().sum())
