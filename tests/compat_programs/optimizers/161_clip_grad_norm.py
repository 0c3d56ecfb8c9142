import oneflow as flow
import oneflow.nn as nn
from shown import fill, fixed, show

model = nn.Linear(4, 3)
fill(model)
(model(fixed(5, 4)) * 10).pow(2).sum().backward()
norm = flow.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
show("norm", norm)
show("grad", model.weight.grad)
total = sum((p.grad**2).sum().item() for p in model.parameters()) ** 0.5
show("total", total)
(model(fixed(5, 4))).pow(2).sum().backward()
nn.utils.clip_grad_value_(model.parameters(), 0.5)
show("clipped", model.weight.grad)
show("inf", nn.utils.clip_grad_norm_(model.parameters(), 0.1, norm_type=float("inf")))
