import oneflow as flow
from shown import fixed, show

logits = fixed(4, 6)
show("logsumexp", flow.logsumexp(logits, dim=1))
p = flow.softmax(logits, dim=-1)
show("entropy", -(p * p.log()).sum(dim=-1))
show("stable", (logits - flow.logsumexp(logits, 1, keepdim=True)).exp().sum(1))
show("perplexity", flow.exp(-(p * flow.log_softmax(logits, dim=-1)).sum(-1)).mean())
