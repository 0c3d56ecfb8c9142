import oneflow as flow
import oneflow.nn as nn
from oneflow.nn import functional as F
from shown import show

drop = nn.Dropout(0.5)
x = flow.ones(50)
flow.manual_seed(3)
a = drop(x)
flow.manual_seed(3)
show("same", flow.equal(a, drop(x)))
show("other", flow.equal(a, drop(x)))
g = flow.Generator()
g.manual_seed(1)
b = F.dropout(x, 0.2)
show("values", set(round(v, 3) for v in b.tolist()) <= {0.0, 1.25})
