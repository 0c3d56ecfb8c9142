import tempfile

import oneflow as flow
import oneflow.nn as nn
from shown import fill, show

model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
fill(model)
with tempfile.TemporaryDirectory() as folder:
    flow.save(model.state_dict(), folder + "/model.of")
    state = flow.load(folder + "/model.of")
show("keys", sorted(state.keys()))
show("weight", state["0.weight"])
other = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
show("result", str(other.load_state_dict(state)))
show("same", flow.equal(other[0].weight, model[0].weight))
