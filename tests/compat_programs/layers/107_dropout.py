import oneflow as flow
import oneflow.nn as nn
import oneflow.nn.functional as F
from shown import show

drop = nn.Dropout(0.5)
x = flow.ones(100, 100)
y = drop(x)
show("values", sorted(set(y.numpy().ravel().tolist())))
show("share", abs((y == 0).to(flow.float32).mean().item() - 0.5) < 0.05)
drop.eval()
show("eval", flow.equal(drop(x), x))
show("zero", flow.equal(nn.Dropout(0.0)(x), x))
show("functional", flow.equal(F.dropout(x, 0.3, training=False), x))
