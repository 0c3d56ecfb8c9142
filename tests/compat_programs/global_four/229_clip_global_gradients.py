# ranks: 4
import oneflow as flow
import oneflow.nn as nn
from shown import fill, fixed, show

P = flow.placement("cpu", [0, 1, 2, 3])
B, S0 = flow.sbp.broadcast, flow.sbp.split(0)
model = nn.Linear(4, 2)
fill(model)
model.to_global(P, B)
x = fixed(8, 4).to_global(P, B).to_global(sbp=S0)
(model(x) * 5).pow(2).sum().backward()
norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
show("norm", norm.numpy())
show("grad", model.weight.grad.numpy())
