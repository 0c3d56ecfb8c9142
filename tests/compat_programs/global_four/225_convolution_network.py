# ranks: 4
import oneflow as flow
from oneflow import nn
import oneflow.nn.functional as F
from shown import fill, fixed, show

P = flow.placement("cpu", [0, 1, 2, 3])
B, S0 = flow.sbp.broadcast, flow.sbp.split(0)
model = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16, 3))
fill(model)
model.to_global(P, B)
x = fixed(4, 1, 4, 4).to_global(P, B).to_global(sbp=S0)
y = flow.tensor([0, 1, 2, 0]).to_global(P, B).to_global(sbp=S0)
out = model(x)
loss = F.cross_entropy(out, y)
loss.backward()
show("out", (out.sbp, out.numpy()))
show("loss", loss.numpy())
show("grad", model[0].weight.grad.numpy())
