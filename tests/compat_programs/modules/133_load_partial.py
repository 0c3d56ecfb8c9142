import oneflow as flow
import oneflow.nn as nn
from shown import show

model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
state = model.state_dict()
state = {k: v for k, v in state.items() if not k.startswith("1.")}
state["extra"] = flow.ones(2)
result = model.load_state_dict(state, strict=False)
show("missing", sorted(result.missing_keys))
show("unexpected", sorted(result.unexpected_keys))
try:
    model.load_state_dict(state)
    show("strict", "no error")
except RuntimeError:
    show("strict", "RuntimeError")
try:
    nn.Linear(3, 5).load_state_dict(nn.Linear(3, 4).state_dict())
    show("shape", "no error")
except RuntimeError:
    show("shape", "RuntimeError")
