import oneflow as flow
from shown import fixed, show

q, k, v = fixed(2, 2, 5, 4), fixed(2, 2, 5, 4, seed=1), fixed(2, 2, 5, 4, seed=2)
scores = flow.matmul(q, k.transpose(-2, -1)) / 4**0.5
mask = flow.tril(flow.ones(5, 5)).bool()
scores = scores.masked_fill(~mask, -1e4)
weights = flow.softmax(scores, dim=-1)
out = flow.matmul(weights, v)
show("weights", weights.sum(dim=-1))
show("out", out)
show("fused scale", flow.matmul(q, k, transpose_b=True, alpha=0.5))
