# ranks: 4
import oneflow as flow
from shown import fixed, show

P = flow.placement("cpu", [0, 1, 2, 3])
B, S0 = flow.sbp.broadcast, flow.sbp.split(0)
x = fixed(8, 6).to_global(P, B).to_global(sbp=S0)
show("reshape", (x.reshape(8, 2, 3).sbp, x.reshape(8, 2, 3).numpy().sum()))
show("transpose", (x.transpose(0, 1).sbp, x.transpose(0, 1).shape))
show("unsqueeze", x.unsqueeze(0).sbp)
show("cat", (flow.cat([x, x], dim=1).sbp, flow.cat([x, x], dim=0).numpy().sum()))
show("slice", x[2:5].numpy())
show("flatten", x.flatten().numpy().sum())
show("gather", flow.index_select(x, 1, flow.tensor([0, 2]).to_global(P, B)).numpy())
