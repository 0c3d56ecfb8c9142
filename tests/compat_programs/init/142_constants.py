import oneflow as flow
import oneflow.nn as nn
from shown import show

w = flow.empty(3, 4)
show("zeros", nn.init.zeros_(w).sum().item())
show("ones", nn.init.ones_(w).sum().item())
show("constant", nn.init.constant_(w, 2.5))
show("eye", nn.init.eye_(flow.empty(3, 3)))
show("in place", flow.equal(nn.init.ones_(w), w))
