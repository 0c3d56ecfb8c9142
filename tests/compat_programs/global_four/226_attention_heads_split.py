# ranks: 4
import oneflow as flow
from shown import fixed, show

P = flow.placement("cpu", [0, 1, 2, 3])
B, S1, S2 = flow.sbp.broadcast, flow.sbp.split(1), flow.sbp.split(2)
b, h, n, d = 2, 4, 3, 2
q, k, v = [fixed(b, h, n, d, seed=i).to_global(P, B).to_global(sbp=S1) for i in range(3)]
weights = flow.softmax(flow.matmul(q, k.transpose(2, 3)) * d**-0.5, dim=-1)
out = flow.matmul(weights, v)
show("weights", weights.sbp)
show("out", (out.sbp, out.numpy()))
joined = out.transpose(1, 2)
show("joined", joined.sbp)
show("merged", joined.reshape(b, n, h * d).numpy())
