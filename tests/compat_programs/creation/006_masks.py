import oneflow as flow
from shown import show

n = 5
mask = flow.tril(flow.ones(n, n))
show("tril", mask)
show("triu", flow.triu(flow.ones(3, 4), diagonal=1))
causal = flow.zeros(n, n).masked_fill(mask == 0, float("-inf"))
show("weights", flow.softmax(causal, dim=-1))
lengths = flow.tensor([2, 5, 3])
padding = flow.arange(n).unsqueeze(0) < lengths.unsqueeze(1)
show("padding", padding)
show("count", padding.to(flow.int64).sum(dim=1))
