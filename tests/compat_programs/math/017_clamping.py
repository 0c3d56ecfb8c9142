import oneflow as flow
from shown import show

x = flow.tensor([-3.0, -1.0, 0.0, 2.0, 5.0])
show("clamp", flow.clamp(x, -1, 2))
show("min only", x.clamp(min=0))
show("max only", flow.clip(x, max=1.5))
show("clamp_min", flow.clamp_min(x, 0.5))
show("clamp_max", flow.clamp_max(x, 0.5))
show("maximum", flow.maximum(x, flow.zeros(5)))
show("minimum", flow.minimum(x, flow.ones(5)))
y = x.clone()
y.clamp_(0, 1)
show("in place", y)
