import oneflow as flow
import oneflow.nn as nn
from shown import fill, fixed, show

P, B = flow.placement("cpu", [0]), flow.sbp.broadcast
model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
fill(model)
model = model.to_global(placement=P, sbp=B)
show("out", model(fixed(2, 3).to_global(P, flow.sbp.split(0))))
show("sbp", [p.sbp for p in model.parameters()])
show("state", {k: v.is_global for k, v in model.state_dict().items()})
