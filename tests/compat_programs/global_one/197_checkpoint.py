import tempfile

import oneflow as flow
import oneflow.nn as nn
from shown import fill, show

P, B = flow.placement("cpu", [0]), flow.sbp.broadcast
model = nn.Linear(3, 2)
fill(model)
model.to_global(P, B)
with tempfile.TemporaryDirectory() as folder:
    flow.save(model.state_dict(), folder + "/model", global_dst_rank=0)
    state = flow.load(folder + "/model", global_src_rank=0)
other = nn.Linear(3, 2).to_global(P, B)
other.load_state_dict(state)
show("weight", other.weight)
show("same", flow.allclose(model.bias.to_local(), other.bias.to_local()))
