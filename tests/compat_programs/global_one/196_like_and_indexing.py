import oneflow as flow
from shown import fixed, show

P, S0 = flow.placement("cpu", [0]), flow.sbp.split(0)
x = fixed(4, 3).to_global(P, S0)
show("zeros_like", flow.zeros_like(x))
show("ones_like", flow.ones_like(x).sum())
show("slice", x[1:3].to_local())
show("cat", flow.cat([x, x], dim=1).shape)
show("argmax", x.argmax(dim=1).to_local())
show("numpy", x.numpy().sum())
show("clone", x.clone())
