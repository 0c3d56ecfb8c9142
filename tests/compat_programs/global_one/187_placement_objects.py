import oneflow as flow
from shown import show

P = flow.placement("cpu", ranks=[0])
Q = flow.placement("cpu", [[0]])
show("P", P)
show("Q", Q)
show("equal", (P == flow.placement("cpu", [0]), P == Q))
show("type", (P.type, P.ranks.tolist(), Q.ranks.shape))
show("all", flow.placement.all("cpu").type)
show("hash", len({P, flow.placement("cpu", [0])}))
show("env", flow.env.all_device_placement("cpu"))
