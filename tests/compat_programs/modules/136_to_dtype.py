import oneflow as flow
import oneflow.nn as nn
from shown import fill, fixed, show

model = nn.Linear(3, 2)
fill(model)
model = model.to(flow.float64)
show("double", model(fixed(2, 3).double()))
show("half", {n: p.dtype for n, p in model.half().named_parameters()})
model.float()
model.to("cpu")
show("float", (model.weight.dtype, next(model.parameters()).device.type))
