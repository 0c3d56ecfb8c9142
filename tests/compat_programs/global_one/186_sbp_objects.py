import oneflow as flow
from shown import show

s0, s1, b, p = flow.sbp.split(0), flow.sbp.split(1), flow.sbp.broadcast, flow.sbp.partial_sum
show("sbps", [s0, s1, b, p])
show("equal", (s0 == flow.sbp.split(0), s0 == s1, b == flow.sbp.broadcast))
show("dim", flow.sbp.split(dim=2))
show("in", s0 in (b, s0))
show("called", flow.sbp.broadcast() == b)
show("hash", len({s0, s1, b, p, flow.sbp.split(1)}))
