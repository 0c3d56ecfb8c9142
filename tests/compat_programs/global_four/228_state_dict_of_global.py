# ranks: 4
import os
import tempfile

import oneflow as flow
from oneflow import nn
from shown import fill, show

P = flow.placement("cpu", [0, 1, 2, 3])
B, S0 = flow.sbp.broadcast, flow.sbp.split(0)
folder = os.path.join(tempfile.gettempdir(), "compat_state_%s" % os.environ.get("MASTER_PORT", "0"))
model = nn.Linear(4, 8)
fill(model)
model.to_global(P, S0)
flow.save(model.state_dict(), folder, global_dst_rank=0)
flow.comm.barrier()
other = nn.Linear(4, 8).to_global(P, S0)
other.load_state_dict(flow.load(folder, global_src_rank=0))
show("sbp", other.weight.sbp)
show("local", other.weight.to_local().detach())
show("value", other.weight.numpy())
